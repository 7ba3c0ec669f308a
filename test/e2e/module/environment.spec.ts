import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { PaymentsModule, paymentsConfig } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { bootFailure } from '../../support/webhook/boot-failure.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

const PRIVATE = 'a-private-value';
const VARIABLES = {
  PAYMENTS_BASE_URL: 'https://payments.example.com',
  PAYMENTS_CLIENT_ID: 'client',
  PAYMENTS_CLIENT_SECRET: `${PRIVATE}-client`,
  PAYMENTS_WEBHOOK_SECRET: `${PRIVATE}-webhook`,
};

const before = { ...process.env };
beforeEach(() => void Object.assign(process.env, VARIABLES));
afterEach(() => {
  for (const name of Object.keys(process.env)) if (!(name in before)) delete process.env[name];
});

const payments = () => PaymentsModule.forRootAsync(paymentsConfig.asProvider());
const start = async (...imports: Parameters<typeof bootFailure>) =>
  WebhookApplication.start({ payments: false, imports: [...imports, payments()] });
const status = async (app: WebhookApplication, webhookSecret: string) =>
  (await app.send(signedWebhook({ webhookSecret }))).status;

describe('paymentsConfig', () => {
  it('AP-10 paymentsConfig configures the module from the environment, without @nestjs/config', async () => {
    process.env['PAYMENTS_WEBHOOK_SECRET'] = 'whsec_of_today';
    await using app = await start();
    expect(await status(app, 'whsec_of_today')).toBe(200);
    expect(await status(app, VARIABLES.PAYMENTS_WEBHOOK_SECRET)).toBe(401);
  });

  it('paymentsConfig reads variables that ConfigModule.forRoot() loads from a file', async () => {
    delete process.env['PAYMENTS_WEBHOOK_SECRET'];
    const config = ConfigModule.forRoot({
      envFilePath: import.meta.filename,
      parser: () => ({ PAYMENTS_WEBHOOK_SECRET: 'whsec_of_the_file' }),
    });
    await using app = await start(config);
    expect(await status(app, 'whsec_of_the_file')).toBe(200);
  });

  it('WH-16 paymentsConfig accepts the previous webhook secret in addition to the current one', async () => {
    process.env['PAYMENTS_WEBHOOK_SECRET_PREVIOUS'] = 'whsec_of_yesterday';
    await using app = await start();
    expect(await status(app, VARIABLES.PAYMENTS_WEBHOOK_SECRET)).toBe(200);
    expect(await status(app, 'whsec_of_yesterday')).toBe(200);
  });

  it('ConfigService returns the options if ConfigModule loads paymentsConfig', async () => {
    const config = ConfigModule.forRoot({ ignoreEnvFile: true, load: [paymentsConfig] });
    await using app = await start(config);
    const service = app.app.get(ConfigService);
    expect(service.get('payments.clientId')).toBe('client');
    expect(service.get('payments.clientSecret')).toBe(VARIABLES.PAYMENTS_CLIENT_SECRET);
    expect(service.get('payments')).toEqual(paymentsConfig().payments);
  });

  it('paymentsConfig rejects an empty environment, and lists all missing variables', async () => {
    for (const name of Object.keys(VARIABLES)) delete process.env[name];
    const { error } = await bootFailure(payments());
    expect(error).toMatchObject({ code: 'options_invalid' });
    for (const name of Object.keys(VARIABLES))
      expect(error.message).toContain(`${name} is not set`);
  });

  it.each([
    ['PAYMENTS_CLIENT_ID', 'ends with a line break', (value: string) => `${value}\n`],
    [
      'PAYMENTS_WEBHOOK_SECRET_PREVIOUS',
      'ends with a line break and is surrounded by quotes',
      () => `'${PRIVATE}'\n`,
    ],
  ] as const)(
    'HT-32 the boot fails if the value of %s has white space or quotes around it (%s)',
    async (name, fault, wrap) => {
      process.env[name] = wrap(process.env[name] ?? '');
      const { error, shown } = await bootFailure(payments());
      expect(error).toMatchObject({ code: 'options_invalid' });
      expect(error.message).toContain(`${name} ${fault}`);
      expect(error.message).toMatch(/never part of it: remove them\.$/);
      expect(shown).not.toContain(PRIVATE);
    },
  );
});
