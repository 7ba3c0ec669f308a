import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Inject, Injectable, Module } from '@nestjs/common';
import type { DynamicModule, INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { PaymentInbox, PaymentsApiService, PaymentsModule } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { CapturedLog } from '../../support/log/captured-log.js';
import { exchange } from '../../support/http/http-exchange.js';
import {
  Orders,
  ADAPTERS,
  BODY_OPTIONS,
  OPTIONS,
  SECRET,
  ADAPTER_OPTIONS,
} from '../../support/webhook/webhook-application.js';

const COMPANY = { webhookSecret: SECRET };
const open: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const each of open.splice(0)) await each.close();
});

function merchant(
  payments: DynamicModule,
  ...imports: DynamicModule['imports'] & object
): new () => object {
  @Module({ imports: [payments, ...imports], providers: [Orders] })
  class Merchant {}
  return Merchant;
}

async function portOf(app: INestApplication): Promise<number> {
  const server = app.getHttpServer() as Server;
  if (!server.listening) await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

async function statusAt(app: INestApplication, path = '/webhooks/payments'): Promise<number> {
  const { headers, body } = signedWebhook(COMPANY);
  const url = `http://127.0.0.1:${await portOf(app)}${path}`;
  return (await exchange(url, { headers, body })).status;
}

describe.each(ADAPTER_OPTIONS)('booting on $adapter with $option', ({ adapter, option }) => {
  const testing = async (module: new () => object): Promise<INestApplication> => {
    const reference = await Test.createTestingModule({ imports: [module] })
      .setLogger(new CapturedLog())
      .compile();
    const app = reference.createNestApplication(ADAPTERS[adapter]!(), BODY_OPTIONS[option]);
    open.push(app);
    return app;
  };

  it('WH-01 an application of @nestjs/testing receives webhook requests', async () => {
    const app = await testing(merchant(PaymentsModule.forRoot(OPTIONS)));
    await app.listen(0, '127.0.0.1');
    expect(await statusAt(app)).toBe(200);
    expect(app.get(Orders).seen).toHaveLength(1);
  });

  it('WH-01 an application receives webhook requests after app.init(), without listen()', async () => {
    const app = await testing(merchant(PaymentsModule.forRoot(OPTIONS)));
    await app.init();
    if (adapter === 'express') {
      expect(await statusAt(app)).toBe(200);
      return;
    }
    const { path, method, headers, body } = signedWebhook(COMPANY);
    const fastify = (app as NestFastifyApplication).getHttpAdapter().getInstance();
    const response = await fastify.inject({
      url: path,
      method,
      headers: { ...headers },
      payload: body,
    });
    expect(response.statusCode).toBe(200);
    expect(app.get(Orders).seen).toHaveLength(1);
  });
});

it('WH-12 before app.init(), a webhook request gets 404, and a global prefix can still be set', async () => {
  const app = await NestFactory.create(merchant(PaymentsModule.forRoot(OPTIONS)), {
    logger: false,
  });
  open.push(app);
  expect(await statusAt(app)).toBe(404);
  app.setGlobalPrefix('api');
  await app.init();
  expect(await statusAt(app, '/api/webhooks/payments')).toBe(200);
});

it('the API client and the inbox work in an application context without HTTP', async () => {
  const log = new CapturedLog();
  const context = await NestFactory.createApplicationContext(
    merchant(PaymentsModule.forRoot(OPTIONS)),
    { logger: log, abortOnError: false },
  );
  open.push(context);
  expect(context.get(PaymentsApiService)).toBeInstanceOf(PaymentsApiService);
  expect(context.get(PaymentInbox)).toBeInstanceOf(PaymentInbox);
  expect(log.matching(/Payment deliveries|^(warn|error)/)).toEqual([]);
});

@Injectable()
class Settings {
  readonly secret: string = SECRET;

  createPaymentsOptions(): PaymentsModuleOptions {
    return { ...OPTIONS, webhookSecret: this.secret };
  }
}
@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

@Injectable()
class Billing {
  constructor(
    @Inject(PaymentsApiService) readonly payments: PaymentsApiService,
    @Inject(PaymentInbox) readonly inbox: PaymentInbox,
  ) {}
}
@Module({ providers: [Billing] })
class BillingModule {}

describe('forRoot and forRootAsync', () => {
  const start = async (...parts: Parameters<typeof merchant>): Promise<INestApplication> => {
    const app = await NestFactory.create(merchant(...parts), {
      logger: false,
      abortOnError: false,
    });
    open.push(app);
    await app.init();
    return app;
  };
  const useFactory = ({ secret }: Settings) => ({ ...OPTIONS, webhookSecret: secret });
  const injected = { imports: [SettingsModule], inject: [Settings] };

  it.each([
    [
      'an async useFactory',
      PaymentsModule.forRootAsync({ useFactory: async () => Promise.resolve(OPTIONS) }),
    ],
    [
      'useFactory with imports and inject',
      PaymentsModule.forRootAsync({ ...injected, useFactory }),
    ],
    [
      'useExisting',
      PaymentsModule.forRootAsync({ imports: [SettingsModule], useExisting: Settings }),
    ],
  ])('the module takes its options from %s', async (_, module) => {
    expect(await statusAt(await start(module))).toBe(200);
  });

  it.each([
    ['forRoot', PaymentsModule.forRoot({ ...OPTIONS, webhookPath: '/money/in/', isGlobal: true })],
    [
      'forRootAsync',
      PaymentsModule.forRootAsync({
        useFactory: () => OPTIONS,
        webhookPath: 'money/in',
        isGlobal: true,
      }),
    ],
  ])('the module takes webhookPath and isGlobal from %s', async (_, module) => {
    const app = await start(module, BillingModule);
    expect(await statusAt(app, '/money/in')).toBe(200);
    expect(await statusAt(app)).toBe(404);
    expect(app.get(Billing, { strict: false }).payments).toBe(app.get(PaymentsApiService));
  });

  it.each([
    ['forRoot', PaymentsModule.forRoot({ ...OPTIONS, webhookPath: false })],
    [
      'forRootAsync',
      PaymentsModule.forRootAsync({ useFactory: () => OPTIONS, webhookPath: false }),
    ],
  ])('the module mounts no endpoint if %s sets webhookPath: false', async (_, module) => {
    expect(await statusAt(await start(module))).toBe(404);
  });

  it('PaymentsModule is global only if isGlobal is set', async () => {
    await expect(start(PaymentsModule.forRoot(OPTIONS), BillingModule)).rejects.toThrow(
      /resolve dependencies of the Billing/,
    );
  });

  it.each(['webhookPath', 'isGlobal'])(
    'the boot error explains where to set "%s" if the options factory returns this option',
    async (extra) => {
      const module = PaymentsModule.forRootAsync({
        useFactory: () => ({ ...OPTIONS, [extra]: true }),
      });
      await expect(start(module)).rejects.toThrow(
        `"${extra}" must be known before the factory runs: pass it to`,
      );
    },
  );
});
