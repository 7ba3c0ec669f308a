import { describe, expect, it } from '@jest/globals';
import { checkPaymentsEnvironment, readPaymentsEnvironment } from './payments-environment.js';
import { surroundingFault } from './errors/option-checks.js';

const VARIABLES = {
  PAYMENTS_BASE_URL: 'https://payments.example.com',
  PAYMENTS_CLIENT_ID: 'client',
  PAYMENTS_CLIENT_SECRET: 'a-private-value',
  PAYMENTS_WEBHOOK_SECRET: 'another-private-value',
};

describe('readPaymentsEnvironment', () => {
  it('readPaymentsEnvironment() returns the options of one company', () => {
    expect(readPaymentsEnvironment(VARIABLES)).toEqual({
      baseUrl: 'https://payments.example.com',
      clientId: 'client',
      clientSecret: 'a-private-value',
      webhookSecret: 'another-private-value',
      allowInsecureHttp: false,
    });
  });

  it.each([
    ['former', ['another-private-value', 'former']],
    ['', 'another-private-value'],
    ['  ', 'another-private-value'],
  ])(
    'readPaymentsEnvironment() returns the webhook secrets if the previous secret is %j',
    (previous, expected) => {
      const variables = { ...VARIABLES, PAYMENTS_WEBHOOK_SECRET_PREVIOUS: previous };
      expect(readPaymentsEnvironment(variables).webhookSecret).toEqual(expected);
    },
  );

  it.each([
    ['true', true],
    ['false', false],
    ['', false],
  ])('readPaymentsEnvironment() reads PAYMENTS_ALLOW_INSECURE_HTTP=%s as %p', (value, expected) => {
    const variables = { ...VARIABLES, PAYMENTS_ALLOW_INSECURE_HTTP: value };
    expect(readPaymentsEnvironment(variables).allowInsecureHttp).toBe(expected);
  });

  it('readPaymentsEnvironment() lists all faults in one error', () => {
    const read = () => readPaymentsEnvironment({ PAYMENTS_CLIENT_ID: 'client\n' });
    expect(read).toThrow(
      expect.objectContaining({
        code: 'options_invalid',
        message:
          'PaymentsModule: environment variables are missing or wrong. ' +
          'PAYMENTS_BASE_URL is not set. Set it to the address of the payments service, for example https://payments.example.com. ' +
          'PAYMENTS_CLIENT_ID ends with a line break. White space and quotes around the value are never part of it: remove them. ' +
          'PAYMENTS_CLIENT_SECRET is not set. Set it to the client secret that the payments service gave you. ' +
          'PAYMENTS_WEBHOOK_SECRET is not set. Set it to the secret that signs your webhooks.',
      }),
    );
  });
});

describe('checkPaymentsEnvironment', () => {
  it('checkPaymentsEnvironment() returns no fault for valid variables', () => {
    expect(checkPaymentsEnvironment(VARIABLES)).toEqual([]);
  });

  it.each([
    ['PAYMENTS_BASE_URL', '', /is not set. Set it to the address/],
    ['PAYMENTS_BASE_URL', 'payments.example.com', /is not an http or https address/],
    ['PAYMENTS_BASE_URL', 'ftp://payments.example.com', /is not an http or https address/],
    ['PAYMENTS_BASE_URL', '"https://payments.example.com"', /is surrounded by quotes/],
    ['PAYMENTS_CLIENT_ID', undefined, /is not set. Set it to the client id/],
    ['PAYMENTS_CLIENT_ID', ' \n', /is not set/],
    ['PAYMENTS_CLIENT_SECRET', "'private'", /is surrounded by quotes/],
    ['PAYMENTS_CLIENT_SECRET', '`private`', /is surrounded by quotes/],
    ['PAYMENTS_WEBHOOK_SECRET', '"private"', /is surrounded by quotes/],
    ['PAYMENTS_WEBHOOK_SECRET_PREVIOUS', '`private`', /is surrounded by quotes/],
    ['PAYMENTS_WEBHOOK_SECRET', 'private\r\n', /ends with a line break/],
    ['PAYMENTS_WEBHOOK_SECRET_PREVIOUS', 'private ', /ends with white space/],
    ['PAYMENTS_ALLOW_INSECURE_HTTP', 'yes', /must be true or false/],
  ])(
    'checkPaymentsEnvironment() reports %s=%j in one fault, with the name and without the value',
    (name, value, words) => {
      const faults = checkPaymentsEnvironment({ ...VARIABLES, [name]: value });
      expect(faults).toEqual([expect.stringMatching(words)]);
      expect(faults[0]).toMatch(new RegExp(`^${name} `));
      expect(faults[0]).not.toContain('private');
    },
  );
});

describe('surroundingFault', () => {
  it.each([
    ['\ts', /^begins with white space\. /],
    ['s ', /^ends with white space\. /],
    ['s \n', /^ends with a line break\. /],
    ['\u00a0s\n', /^begins with white space and ends with a line break\. /],
    ['"s"', /^is surrounded by quotes\. /],
    ["'s'\n", /^ends with a line break and is surrounded by quotes\. /],
    ['`s`', /^is surrounded by quotes\. /],
    ['""', /^is surrounded by quotes\. /],
  ])('surroundingFault() describes the fault of %j', (value, words) => {
    expect(surroundingFault(value)).toMatch(words);
  });

  it.each(['s', 'a b', '"', '"s', 's"', `"s'`, 's"s', 'line\nbreak'])(
    'surroundingFault() accepts %j',
    (value) => {
      expect(surroundingFault(value)).toBeUndefined();
    },
  );
});
