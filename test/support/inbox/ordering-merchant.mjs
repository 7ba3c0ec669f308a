// A merchant's application that expects each payment before it requests it, in a process of its own that kills itself:
// `node ordering-merchant.mjs <setup>`. The setup is JSON: that of `merchant.mjs`, and the orders to place.
import 'reflect-metadata';
import { writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import {
  OnPaymentEvent,
  PaymentExpectations,
  PaymentsApiService,
  PaymentsModule,
} from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { INBOX_STORE } from '../../../libs/payments/dist/inbox/store/inbox-store.js';

/** @type {{ kind: string, where: string, schema: string, worker: object, webhookSecret: string, orders: import('./merchant-process.js').OrdersSetup }} */
const setup = JSON.parse(process.argv[2]);
const { baseUrl, place, request = false, again = [] } = setup.orders;
/** @param {string[]} words */
const report = (...words) => void writeSync(1, `${words.join(' ')}\n`);
const die = () => process.kill(process.pid, 'SIGKILL');

/** The step at which each order of this process halts. Orders of earlier processes do not halt. */
const halts = new Map(place.map(({ reference, halt }) => [reference, halt]));
let halted = 0;

/** Returns, or never resolves if the order halts at this step. The process dies when its last order halts. */
async function step(reference, name) {
  if (halts.get(reference) !== name) return;
  halts.set(reference, 'halted');
  halted += 1;
  if (halted === place.length) die();
  await new Promise(() => {});
}

async function inbox() {
  if (setup.kind === 'sqlite') return sqliteInbox({ file: setup.where, allowOldSqlite: true });
  const { postgresInbox } = await import('nestjs-payments/postgres');
  return postgresInbox({ connectionString: setup.where, schema: setup.schema });
}

/** The id of the transaction with the reference, if the service has one. */
async function find(reference, api) {
  const query = { externalReference: reference };
  const { transactions } = await api.get('/v1/transactions', { query });
  return transactions[0];
}

/** The polls of an order: soon and often, or so late that a webhook request is first. */
const SOON = Array.from({ length: 100 }, (_, n) => (n < 20 ? 200 + 300 * n : 2000 * n - 33_000));
const LATE = SOON.map((ms) => 3000 + ms);

class Orders {
  async book({ data }, context) {
    const reference = data.externalReference;
    await step(reference, 'handling');
    await context.commit((tx) =>
      setup.kind === 'sqlite'
        ? void tx.prepare('INSERT INTO effect (id) VALUES (?)').run(reference)
        : tx.query(`INSERT INTO ${setup.schema}.effect (id) VALUES ($1)`, [reference]),
    );
    await step(reference, 'booked');
  }
}
const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'book');
OnPaymentEvent('transaction.completed', { name: 'book' })(Orders.prototype, 'book', method);
Injectable()(Orders);
class App {}
Module({
  imports: [
    PaymentsModule.forRoot({
      baseUrl,
      clientId: 'client',
      clientSecret: 'secret',
      webhookSecret: setup.webhookSecret,
      worker: setup.worker,
      inbox: await inbox(),
      reconcile: {
        find,
        interpret: async ({ status }, { reference }) => {
          await step(reference, 'polling');
          if (status !== 'complete') return 'pending';
          return { eventType: 'transaction.completed', data: { externalReference: reference } };
        },
        maxPollsPerSecond: 1000,
      },
    }),
  ],
  providers: [Orders],
})(App);

const app = await NestFactory.create(App, new ExpressAdapter(), { logger: ['error', 'warn'] });
// The standard input ends if the test process ends first.
process.stdin.on('end', die).resume();
process.stdin.unref?.();
await app.listen(0, '127.0.0.1');
report('ready', await app.getUrl());

const expectations = app.get(PaymentExpectations);
const api = app.get(PaymentsApiService);

/** Requests the payment, and returns the response. */
async function send(reference, webhook, client = api) {
  await step(reference, 'expected');
  const call = client.post('/v1/transactions', { body: { externalReference: reference } });
  if (halts.get(reference) === 'requesting') {
    while ((await find(reference, api)) === undefined) await setTimeout(10);
    await step(reference, 'requesting');
  }
  if (halts.get(reference) === 'ignored') {
    // The service has received the request by then.
    await setTimeout(500);
    await step(reference, 'ignored');
  }
  const response = await call;
  if (webhook) report('paid', reference, response.transactionId);
  await step(reference, 'requested');
  return response;
}

/** Places an order with the three methods. */
async function placeInSteps({ reference, webhook }) {
  await expectations.expect({ reference, schedule: webhook ? LATE : SOON });
  const { transactionId } = await send(reference, webhook);
  await expectations.attach(reference, { transactionId });
  await step(reference, 'attached');
}

/** Places an order with `request()`. */
async function placeWithRequest({ reference, webhook }) {
  const result = await expectations.request(
    { reference, schedule: webhook ? LATE : SOON },
    (tracked) => send(reference, webhook, tracked),
    { attach: ({ transactionId }) => transactionId },
  );
  await step(reference, 'attached');
  return result;
}

if (request) {
  const store = app.get(INBOX_STORE).expectations;
  const startRequest = store.startRequest.bind(store);
  store.startRequest = async (company, reference, leaseMs) => {
    await step(reference, 'created');
    return startRequest(company, reference, leaseMs);
  };
}
for (const order of place) void (request ? placeWithRequest : placeInSteps)(order);
// The customer clicks again and again, until the payment is requested.
for (const reference of again) {
  void (async () => {
    for (;;) {
      const { requested, transactionId, state } = await placeWithRequest({ reference });
      if (requested || transactionId !== null || state === 'fulfilled') return;
      await setTimeout(500);
    }
  })();
}
