import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { PaymentsModule, paymentsConfig, readPaymentsEnvironment } from 'nestjs-payments';
import type { PaymentsModuleOptions, PaymentsOptionsFactory } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { containerText, visibleText } from '../../support/log/visible-text.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

const CLIENT_SECRET = 'a-private-value-of-the-client';
const WEBHOOK_SECRET = 'a-private-value-of-the-webhook';
const PREVIOUS_SECRET = 'a-private-value-of-yesterday';
const PRIVATE = /a-private-value/;
const VARIABLES = {
  PAYMENTS_BASE_URL: 'https://payments.example.com',
  PAYMENTS_CLIENT_ID: 'client',
  PAYMENTS_CLIENT_SECRET: CLIENT_SECRET,
  PAYMENTS_WEBHOOK_SECRET: WEBHOOK_SECRET,
  PAYMENTS_WEBHOOK_SECRET_PREVIOUS: PREVIOUS_SECRET,
};

const before = { ...process.env };
beforeEach(() => void Object.assign(process.env, VARIABLES));
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
});

/** Options with readable secrets, as a program writes them. */
const plain = (): PaymentsModuleOptions => ({ ...readPaymentsEnvironment() });
const shown = (value: unknown) =>
  `${inspect(value, { depth: Infinity, showHidden: false })} ${JSON.stringify(value)}`;

@Injectable()
class Options implements PaymentsOptionsFactory {
  createPaymentsOptions(): PaymentsModuleOptions {
    return plain();
  }
}

const loading = async () => ConfigModule.forRoot({ ignoreEnvFile: true, load: [paymentsConfig] });
const notLoading = async () => ConfigModule.forRoot({ ignoreEnvFile: true });
const fromService = {
  inject: [ConfigService],
  useFactory: (config: ConfigService) => config.getOrThrow<PaymentsModuleOptions>('payments'),
};

describe.each([
  ['forRoot', notLoading, () => PaymentsModule.forRoot(plain())],
  ['forRoot with several companies', notLoading, () => PaymentsModule.forRoot(several())],
  [
    'forRootAsync with a factory',
    notLoading,
    () => PaymentsModule.forRootAsync({ useFactory: plain }),
  ],
  [
    'forRootAsync with a class',
    notLoading,
    () => PaymentsModule.forRootAsync({ useClass: Options }),
  ],
  [
    'forRootAsync with the options of the ConfigService',
    loading,
    async () => PaymentsModule.forRootAsync({ imports: [await loading()], ...fromService }),
  ],
  [
    'paymentsConfig.asProvider()',
    notLoading,
    () => PaymentsModule.forRootAsync(paymentsConfig.asProvider()),
  ],
  [
    'paymentsConfig.asProvider() and load: [paymentsConfig]',
    loading,
    () => PaymentsModule.forRootAsync(paymentsConfig.asProvider()),
  ],
])('an application configured by %s', (_, config, payments) => {
  it('SE-12 the application accepts webhook requests, and its modules and ConfigService show no secret', async () => {
    const module = await payments();
    expect(shown(module)).not.toMatch(PRIVATE);
    await using app = await WebhookApplication.start({
      payments: false,
      imports: [config(), module],
    });
    for (const webhookSecret of [WEBHOOK_SECRET, PREVIOUS_SECRET]) {
      expect((await app.send(signedWebhook({ webhookSecret }))).status).toBe(200);
    }
    expect(containerText(app.app)).not.toMatch(PRIVATE);
    const service = app.app.get(ConfigService);
    expect(shown(service)).not.toMatch(PRIVATE);
    expect(shown(service.get('payments'))).not.toMatch(PRIVATE);
    // This private field of ConfigService stores the results of `load`.
    expect(shown((service as unknown as { internalConfig: unknown }).internalConfig)).not.toMatch(
      PRIVATE,
    );
    expect(app.log.lines.join('\n')).not.toMatch(PRIVATE);
  });
});

function several(): PaymentsModuleOptions {
  const { baseUrl, ...credentials } = plain() as Required<PaymentsModuleOptions>;
  const { clientId, clientSecret, webhookSecret } = credentials;
  return { baseUrl, companies: [{ id: 'acme', clientId, clientSecret, webhookSecret }] };
}

describe('the options that readPaymentsEnvironment() returns', () => {
  it('SE-12 printed options of readPaymentsEnvironment() show the address and the client id, and no secret', () => {
    const options = readPaymentsEnvironment();
    const visible = {
      baseUrl: 'https://payments.example.com',
      clientId: 'client',
      allowInsecureHttp: false,
    };
    expect(JSON.parse(JSON.stringify(options))).toEqual(visible);
    expect(inspect(options)).toBe(inspect(visible));
    for (const view of [{ getters: true }, { showHidden: true }, { customInspect: false }]) {
      expect(inspect({ options }, { depth: Infinity, ...view })).not.toMatch(PRIVATE);
    }
  });

  it('an object spread copies the secrets of the options that readPaymentsEnvironment() returns', () => {
    const secrets = {
      clientSecret: CLIENT_SECRET,
      webhookSecret: [WEBHOOK_SECRET, PREVIOUS_SECRET],
    };
    const options = readPaymentsEnvironment();
    expect(options).toMatchObject(secrets);
    expect({ ...options, deadlineMs: 1000 }).toEqual({
      baseUrl: 'https://payments.example.com',
      clientId: 'client',
      allowInsecureHttp: false,
      deadlineMs: 1000,
      ...secrets,
    });
  });
});

describe('visibleText', () => {
  it.each([
    ['a field', { deep: { deeper: [{ value: CLIENT_SECRET }] } }],
    ['a key of a map', new Map([[CLIENT_SECRET, 1]])],
    ['a member of a set', new Set([[CLIENT_SECRET]])],
    ['a field of a function', Object.assign(() => {}, { value: CLIENT_SECRET })],
    ['an error', { error: new Error(CLIENT_SECRET) }],
  ])('visibleText() finds a secret in %s', (__, value) => {
    expect(visibleText({ value })).toMatch(PRIVATE);
  });
});
