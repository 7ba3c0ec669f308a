import 'reflect-metadata';
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import type { DynamicModule, INestApplication, NestApplicationOptions } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PaymentInbox, sqliteInbox } from 'nestjs-payments';
import { signedDelivery } from 'nestjs-payments/testing';
import { checkConsole } from './console.check.js';
import { PaymentsServer } from './payments.server.js';
import { report } from './report.js';
import { Orders, Payout, ShopModule } from './shop.module.js';

const SECRET = 'whsec_R8s0xkq2vT5uY7wZ';
const BASIC = `Basic ${Buffer.from('client:secret').toString('base64')}`;
const BODY_OPTIONS: Record<string, NestApplicationOptions> = {
  'no body option': {},
  'rawBody: true': { rawBody: true },
  'bodyParser: false': { bodyParser: false },
};

async function boot(
  module: DynamicModule,
  options: NestApplicationOptions,
): Promise<INestApplication> {
  const adapter = process.argv[2] === 'fastify' ? new FastifyAdapter() : new ExpressAdapter();
  const app = await NestFactory.create(module, adapter, {
    logger: ['warn', 'error', 'fatal'],
    abortOnError: false,
    ...options,
  });
  await app.listen(0, '127.0.0.1');
  return app;
}

async function post(app: INestApplication, path: string, init: RequestInit): Promise<Response> {
  // A connection that is kept alive would hold up the end of the process.
  const headers = { ...(init.headers as Record<string, string>), connection: 'close' };
  return fetch((await app.getUrl()) + path, { ...init, method: 'POST', headers });
}

/** What the application's own route makes of a JSON body. */
async function echo(app: INestApplication): Promise<unknown> {
  const response = await post(app, '/echo', {
    headers: { 'content-type': 'application/json' },
    body: '{"a": 1}',
  });
  return response.json();
}

/** What the route sees in the same application without the package. */
async function expectedEcho(options: NestApplicationOptions): Promise<unknown> {
  const app = await boot(ShopModule.without(), options);
  const seen = await echo(app);
  await app.close();
  return seen;
}

async function shop(app: INestApplication, label: string, server: PaymentsServer): Promise<void> {
  const orders = app.get(Orders);
  const delivery = signedDelivery(
    { webhookSecret: SECRET },
    { data: { transactionId: 't-1', amount: 1500 } },
  );
  const booked = [{ transactionId: 't-1', amount: 1500, company: 'default', status: 'complete' }];

  await report(`${label}: refuses a tampered delivery`, async () => {
    const body = delivery.body.toString().replace('1500', '9500');
    ok(body !== delivery.body.toString());
    strictEqual((await post(app, delivery.path, { ...delivery, body })).status, 401);
    deepStrictEqual(orders.booked, []);
  });
  await report(`${label}: verifies a delivery and runs the handler once`, async () => {
    strictEqual((await post(app, delivery.path, delivery)).status, 200);
    strictEqual((await post(app, delivery.path, delivery)).status, 200);
    deepStrictEqual(orders.booked, booked);
  });
  await report(`${label}: calls the service with a token`, () => {
    deepStrictEqual(server.seen, [
      `POST /v1/auth/token ${BASIC}`,
      'GET /v1/transactions/t-1 Bearer token-1',
    ]);
  });
}

async function run(label: string, options: NestApplicationOptions): Promise<void> {
  const server = new PaymentsServer();
  const payments = {
    baseUrl: await server.start(),
    clientId: 'client',
    clientSecret: 'secret',
    webhookSecret: SECRET,
  };
  let booted: INestApplication | undefined;
  await report(`${label}: boots`, async () => {
    booted = await boot(ShopModule.with(payments), options);
  });
  const app = booted;
  if (app !== undefined) {
    await shop(app, label, server);
    await report(`${label}: leaves the body of another route as it was`, async () => {
      const seen = await echo(app);
      deepStrictEqual(seen, await expectedEcho(options));
      if (options.bodyParser !== false) deepStrictEqual((seen as { body: unknown }).body, { a: 1 });
    });
    await report(`${label}: closes`, () => app.close());
  }
  await server.stop();
}

/** A twelve-factor application, and a handler with a class that its data must satisfy. */
async function runFromEnvironment(): Promise<void> {
  process.env['PAYMENTS_BASE_URL'] = 'http://127.0.0.1:9';
  process.env['PAYMENTS_CLIENT_ID'] = 'client';
  process.env['PAYMENTS_CLIENT_SECRET'] = 'secret';
  process.env['PAYMENTS_WEBHOOK_SECRET'] = SECRET;
  await report(
    'paymentsConfig: boots from the environment, and checks data by its class',
    async () => {
      const app = await boot(ShopModule.fromEnvironment(), {});
      const data = { payoutId: 'f3b5f1f0-5a0e-4a54-9a3c-0d4b7d0b6b5e' };
      const delivery = signedDelivery(
        { webhookSecret: SECRET },
        { eventType: 'payout.settled', data },
      );
      strictEqual((await post(app, delivery.path, delivery)).status, 200);
      const { settled } = app.get(Orders);
      strictEqual(settled.length, 1);
      ok(settled[0] instanceof Payout);
      strictEqual(settled[0].payoutId, data.payoutId);
      await app.close();
    },
  );
}

/** Resolves once every delivery of the event is done. */
async function handled(inbox: PaymentInbox, id: string): Promise<void> {
  for (const end = Date.now() + 10_000; ;) {
    const states = (await inbox.get(id))?.deliveries.map(({ state }) => state) ?? [];
    if (states.length > 0 && states.every((state) => state === 'done')) return;
    ok(Date.now() < end, `The deliveries of ${id} are ${states.join(', ')} after ten seconds.`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** An inbox on disk, and the console in front of it. */
async function runConsole(): Promise<void> {
  const server = new PaymentsServer();
  const folder = await mkdtemp(join(tmpdir(), 'payments-smoke-'));
  const payments = {
    baseUrl: await server.start(),
    clientId: 'client',
    clientSecret: 'secret',
    webhookSecret: SECRET,
    // The oldest Node brings an old SQLite.
    inbox: sqliteInbox({ file: join(folder, 'inbox.db'), allowOldSqlite: true }),
  };
  await report(
    'sqliteInbox, console: handles an event, shows it to an operator and to nobody else',
    async () => {
      const app = await boot(
        ShopModule.withConsole(payments, { ops: 'correct horse battery' }),
        {},
      );
      const delivery = signedDelivery({ webhookSecret: SECRET }, { id: 'event-7' });
      strictEqual((await post(app, delivery.path, delivery)).status, 200);
      await handled(app.get(PaymentInbox), 'event-7');
      await checkConsole(`${await app.getUrl()}/ops/payments`, 'ops:correct horse battery');
      await app.close();
    },
  );
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}

async function main(): Promise<void> {
  for (const [label, options] of Object.entries(BODY_OPTIONS)) await run(label, options);
  await runFromEnvironment();
  await runConsole();
  console.log(JSON.stringify({ title: 'end' }));
}

void main();
