import { describe, expect, it } from '@jest/globals';
import { memoryInbox, PaymentsError, PaymentsModule } from 'nestjs-payments';
import type { InboxDefinition } from 'nestjs-payments';
import { bootFailure } from '../../support/webhook/boot-failure.js';
import { OPTIONS, WebhookApplication, company } from '../../support/webhook/webhook-application.js';

const PRIVATE = 'a-private-value';
const ONE = { ...company('acme', `${PRIVATE}-webhook`), clientSecret: `${PRIVATE}-client` };
const SECRETS = { clientSecret: `${PRIVATE}-client`, webhookSecret: `${PRIVATE}-webhook` };

const DAY = 86_400_000;
/** A memory inbox that declares itself durable. The check of the options reads no other capability of an inbox. */
const DURABLE: InboxDefinition = {
  name: 'durable',
  create: (runtime) => {
    const store = memoryInbox().create(runtime);
    return Object.assign(store, { capabilities: { ...store.capabilities, durable: true } });
  },
};

const companies = (...given: unknown[]) => ({ baseUrl: OPTIONS.baseUrl, companies: given });
const WRONG: readonly [string, object, ...RegExp[]][] = [
  ['no baseUrl', { baseUrl: undefined }, /"baseUrl" of company default must be .*https:\/\//],
  ['a baseUrl that is a host', { baseUrl: 'payments.example.com' }, /"baseUrl".*absolute address/],
  ['a baseUrl with another scheme', { baseUrl: 'ftp://x.example' }, /"baseUrl".*absolute address/],
  [
    'credentials in the baseUrl',
    { baseUrl: `https://user:${PRIVATE}@x.example` },
    /"baseUrl".*must not contain a user name.*"clientId" and "clientSecret"/,
  ],
  ['a query in the baseUrl', { baseUrl: `https://x.example?key=${PRIVATE}` }, /"baseUrl".*query/],
  [
    'an http: baseUrl that is not a loopback address',
    { baseUrl: 'http://x.example' },
    /"baseUrl".*"allowInsecureHttp: true"/,
  ],
  [
    'allowInsecureHttp as a string',
    { allowInsecureHttp: 'false' },
    /"allowInsecureHttp" must be true or/,
  ],
  ['no clientId', { clientId: undefined }, /"clientId".*missing or empty.*environment variable/],
  ['an empty clientSecret', { clientSecret: '' }, /"clientSecret".*missing or empty/],
  ['no webhookSecret', { webhookSecret: undefined }, /"webhookSecret".*missing or empty/],
  [
    'an empty list of webhook secrets',
    { webhookSecret: [] },
    /"webhookSecret".*1 to 10.*list has 0/,
  ],
  ['eleven webhook secrets', { webhookSecret: Array(11).fill(PRIVATE) }, /1 to 10.*list has 11/],
  [
    'both one company and a list of companies',
    { companies: [ONE] },
    /either "clientId".*or "companies", not both/,
  ],
  ['an empty list of companies', companies(), /"companies" must be a list of at least one/],
  [
    'a list of companies that contains null',
    companies(null),
    /"companies" must contain only companies/,
  ],
  ['two companies with the same id', companies(ONE, ONE), /two companies have the id "acme"/],
  [
    'SE-10 two companies with the same webhook secret',
    companies(ONE, { ...ONE, id: 'bolt' }),
    /companies "acme" and "bolt" have the same webhook secret.*Give each/,
  ],
  [
    'a misspelt field of a company',
    companies(ONE, { ...ONE, baseURL: `https://${PRIVATE}` }),
    /no option "companies\[1\]\.baseURL".*webhookSecret, baseUrl\.$/,
  ],
  ['an id with a slash', companies({ ...ONE, id: 'a/b' }), /"id" must be 1 to 100 characters of/],
  ['an id of 101 characters', companies({ ...ONE, id: 'a'.repeat(101) }), /1 to 100/],
  [
    'companies that are an object',
    { ...companies(), companies: {} },
    /a directory with.*"find\(id\)"/,
  ],
  [
    'an unknown option',
    { webhookSecrets: [PRIVATE] },
    /no option "webhookSecrets".*webhookSecret,/,
  ],
  [
    'a body limit as text',
    { webhook: { bodyLimitBytes: '1mb' } },
    /"webhook\.bodyLimitBytes".*whole number of bytes.*a text of 3 characters/,
  ],
  [
    'a body limit that is too small',
    { webhook: { bodyLimitBytes: 1023 } },
    /from 1024 to 67108864; it is 1023.*1048576/,
  ],
  [
    'a limit of 0 company lookups',
    { webhook: { maxLookupsPerSecond: 0 } },
    /"webhook\.maxLookupsPerSecond".*whole number of lookups from 1 to 10000; it is 0.*50/,
  ],
  ['webhook options that are not an object', { webhook: true }, /"webhook" must be an object/],
  ['an unknown webhook option', { webhook: { limit: 1 } }, /no option "webhook\.limit".*bodyLimit/],
  [
    'a maximum age that is too small',
    { webhook: { maxAgeMs: 999 } },
    /"webhook\.maxAgeMs" must be a whole number of milliseconds from 1000 to 315360000000, or false .*; it is 999/,
  ],
  [
    'a maximum age above the default of worker.retainIdsMs, with a durable inbox',
    { webhook: { maxAgeMs: 31 * DAY }, inbox: DURABLE },
    /"webhook\.maxAgeMs" must be at most "worker\.retainIdsMs".*2678400000.*2592000000/,
  ],
  [
    'a webhook.before that is not a function',
    { webhook: { before: {} } },
    /"webhook\.before" must be a function/,
  ],
  [
    'a body timeout that is longer than the deadline',
    { deadlineMs: 1000, webhook: { bodyTimeoutMs: 1001 } },
    /"webhook\.bodyTimeoutMs".*from 100 to 1000; it is 1001/,
  ],
  ['a maxPending of 0', { webhook: { maxPending: 0 } }, /"webhook\.maxPending".*from 1 to 100000/],
  [
    'a maxPendingBytes below bodyLimitBytes',
    { webhook: { bodyLimitBytes: 4096, maxPendingBytes: 4095 } },
    /"webhook\.maxPendingBytes".*from 4096 to 4294967296/,
  ],
  [
    'a deadline that is longer than the time limit of the sender',
    { deadlineMs: 29_001 },
    /"deadlineMs".*milliseconds from 100 to/,
  ],
  ['a deadline that is not a number', { deadlineMs: NaN }, /"deadlineMs".*it is NaN.*25000/],
  [
    'a pattern in oncePerTransaction',
    { oncePerTransaction: ['transaction.*'] },
    /"oncePerTransaction" must be a list of exact event types.*\[\] for none/,
  ],
  [
    'a worker with a concurrency of 0.5',
    { worker: { concurrency: 0.5 } },
    /"worker.concurrency" must be a whole number of attempts from 1 to 1000; it is 0.5/,
  ],
  [
    'a handler time limit of 0 ms',
    { worker: { timeoutMs: 0 } },
    /"worker.timeoutMs" must be a whole number of milliseconds from 1 to 3600000; it is 0/,
  ],
  [
    'a number instead of a retry schedule',
    { worker: { retry: 5 } },
    /"worker.retry" must be a retry schedule: exponential/,
  ],
  [
    'an inbox that is not an inbox definition',
    { inbox: {} },
    /"inbox" must be the result of memoryInbox\(\)/,
  ],
  [
    'a runtime that is not a PaymentsRuntime',
    { runtime: {} },
    /"runtime" must be a PaymentsRuntime; leave it out/,
  ],
];

describe('invalid options', () => {
  it.each(WRONG)(
    'the module rejects %s at boot, and the error names the option and the fix, but no secret',
    async (_, options, ...said) => {
      const whole = 'companies' in options && !('baseUrl' in options) ? OPTIONS : {};
      const given: object =
        'companies' in options ? { ...whole, ...options } : { ...OPTIONS, ...SECRETS, ...options };
      const { error, shown } = await bootFailure(PaymentsModule.forRoot(given));
      expect(error).toBeInstanceOf(PaymentsError);
      expect(error.code).toBe('options_invalid');
      for (const words of [/^PaymentsModule: /, ...said]) expect(error.message).toMatch(words);
      expect(shown).not.toContain(PRIVATE);
    },
  );

  it.each([
    ['clientId', ` ${PRIVATE}`, 'begins with white space'],
    ['clientSecret', `'${PRIVATE}'\n`, 'ends with a line break and is surrounded by quotes'],
    ['webhookSecret', `"${PRIVATE}"`, 'is surrounded by quotes'],
    ['webhookSecret', [PRIVATE, `${PRIVATE}\n`], 'ends with a line break'],
  ])('HT-32 the module rejects the %s %j at boot, because it %s', async (name, value, fault) => {
    const { error, shown } = await bootFailure(
      PaymentsModule.forRoot({ ...OPTIONS, [name]: value }),
    );
    expect(error).toMatchObject({ code: 'options_invalid' });
    expect(error.message).toBe(
      `PaymentsModule: "${name}" of company default ${fault}. ` +
        'White space and quotes around the value are never part of it: remove them.',
    );
    expect(shown).not.toContain(PRIVATE);
  });

  it.each(['https://payments.example.com/v1', 'https://gateway.example.com/payments/V1//'])(
    'HT-32 the module rejects the base URL %s at boot with the advice to remove the /v1',
    async (baseUrl) => {
      const { error } = await bootFailure(PaymentsModule.forRoot({ ...OPTIONS, baseUrl }));
      expect(error).toMatchObject({ code: 'options_invalid' });
      expect(error.message).toContain(
        '"baseUrl" (PAYMENTS_BASE_URL) of company default ends in /v1. Remove the /v1: every path contains it already.',
      );
    },
  );

  it.each(['', '/', 'a b', 'a/:id', 'a/*rest', 'a?b', true, null])(
    'forRoot() and forRootAsync() reject the webhookPath %p',
    (path) => {
      const extras = { webhookPath: path as string | false };
      expect(() => PaymentsModule.forRoot({ ...OPTIONS, ...extras })).toThrow(
        /"webhookPath" must be a plain path/,
      );
      const async = { useFactory: () => OPTIONS, ...extras };
      expect(() => PaymentsModule.forRootAsync(async)).toThrow(
        /"webhookPath" must be a plain path/,
      );
    },
  );

  it.each([
    { baseUrl: 'http://localhost:4000/gateway/' },
    { baseUrl: 'http://127.0.0.1' },
    { baseUrl: 'https://gateway.example.com/v1/api-v1' },
    { baseUrl: 'http://[::1]:80' },
    { baseUrl: 'http://x.example', allowInsecureHttp: true },
    { baseUrl: 'https://x.example/', webhook: { bodyLimitBytes: 1024 }, deadlineMs: 100 },
    { webhook: { bodyLimitBytes: 64 * 1024 ** 2 }, deadlineMs: 29_000 },
    { deadlineMs: 100, webhook: { bodyTimeoutMs: 100, maxPending: 1, before: () => undefined } },
    { webhook: { maxAgeMs: 31 * DAY } },
    { webhook: { maxAgeMs: false as const }, inbox: DURABLE },
    { webhook: { maxAgeMs: 31 * DAY }, worker: { retainIdsMs: 31 * DAY }, inbox: DURABLE },
    { webhookSecret: Array<string>(10).fill('whsec') },
  ])('the module accepts the options %j', async (payments) => {
    await using app = await WebhookApplication.start({ payments });
    expect(app.url).toMatch(/^http/);
  });
});
