// A process with one merchant application. When the module calls a function of the application for the first time, the
// function leaves a promise behind that rejects with "left behind by <name>". Arguments: `sqlite` and a file, or
// `postgres`, a connection string and a schema. Prints the log and the names of all functions that were called, and
// exits with 0 when the application has closed.
import 'reflect-metadata';
import { setImmediate as turn } from 'node:timers/promises';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Transform } from 'class-transformer';
import { IsString } from 'class-validator';
import {
  OnPaymentEvent,
  PaymentExpectations,
  PaymentInbox,
  PaymentsApiService,
  PaymentsModule,
} from 'nestjs-payments';
import { postgresInbox } from 'nestjs-payments/postgres';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { deliver, paymentEvent, settled } from 'nestjs-payments/testing';
import { Pool } from 'pg';
import { MockAgent } from 'undici';

const [kind, where, schema] = process.argv.slice(2);
const started = Promise.withResolvers();
const called = new Set();

/** Leaves a promise behind that rejects once the application has started. */
function leave(name, value) {
  if (called.has(name)) return value;
  called.add(name);
  void (async () => {
    await started.promise;
    throw new Error(`left behind by ${name}`);
  })();
  return value;
}

class Logger {
  #print(line) {
    console.log(String(line));
    // Nest itself calls the logger, too.
    if (String(line).includes('left behind by')) leave('logger');
  }
  log(line) {
    this.#print(line);
  }
  warn(line) {
    this.#print(line);
  }
  error(line) {
    this.#print(line);
  }
}

const clock = {
  now: () => leave('runtime.now', Date.now()),
  monotonic: () => leave('runtime.monotonic', performance.now()),
  random: () => leave('runtime.random', Math.random()),
  /** @type {(ms: number, callback: () => void) => () => void} */
  schedule: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return leave('runtime.schedule', () => {
      clearTimeout(timer);
      leave('a cancelled runtime.schedule');
    });
  },
};

class Data {}
IsString()(Data.prototype, 'transactionId');
Transform(({ value }) => leave('@Transform', value))(Data.prototype, 'transactionId');

class Orders {
  async handle(event, context) {
    leave('a handler');
    await context.commit(() => leave('context.commit'));
  }
}
const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'handle');
OnPaymentEvent('*', { name: 'book', data: Data })(Orders.prototype, 'handle', method);
Injectable()(Orders);

const pool = kind === 'postgres' ? new Pool({ connectionString: where }) : null;
async function runTransaction(work) {
  leave('runTransaction');
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    const result = await work({ tx: client, query: (text, values) => client.query(text, values) });
    await client.query('COMMIT');
    return result;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  } finally {
    client.release();
  }
}
const inbox = pool
  ? postgresInbox({ connectionString: where, schema, runTransaction })
  : sqliteInbox({ file: where });

const observer = new Proxy(
  {},
  {
    get: (_target, name) => () => leave(`observer ${String(name)}`),
  },
);
const instrumentation = {
  attach: () => {
    leave('attach');
    return () => leave('detach');
  },
  startSpan: () =>
    leave('startSpan', {
      get traceparent() {
        return leave('span.traceparent', null);
      },
      run: (work) => {
        leave('span.run');
        work();
      },
      end: () => leave('span.end'),
    }),
};

const company = {
  id: 'default',
  baseUrl: 'http://127.0.0.1:9',
  clientId: 'client',
  clientSecret: 'secret',
  webhookSecret: 'webhook-secret',
};
const TOKEN = { access_token: 'token', expires_in: 3600, token_type: 'Bearer' };
const dispatcher = new MockAgent();
const service = dispatcher.get(company.baseUrl);
service.intercept({ path: '/v1/auth/token', method: 'POST' }).reply(200, TOKEN).persist();
service
  .intercept({ path: /^\/v1\/transactions\// })
  .reply(200, { status: 'complete' })
  .persist();

class App {}
Module({
  imports: [
    PaymentsModule.forRoot({
      companies: { find: async () => leave('companies.find', company) },
      inbox,
      runtime: clock,
      summary: () => leave('summary', { reference: 'order' }),
      bodyCodec: {
        encode: (body) => leave('bodyCodec.encode', body),
        decode: (stored) => leave('bodyCodec.decode', stored),
      },
      webhook: { before: () => leave('webhook.before') },
      reconcile: {
        interpret: () => leave('reconcile.interpret', { eventType: 'transaction.completed' }),
        find: async (reference) => leave('reconcile.find', `t-${reference}`),
        schedule: [0],
      },
      api: { dispatcher },
      observers: [instrumentation, observer],
    }),
  ],
  providers: [Orders],
})(App);

const app = await NestFactory.create(App, { logger: new Logger() });
await app.init();
started.resolve();
await turn();
for (const transactionId of ['t-1', 't-2']) {
  const event = paymentEvent('transaction.completed', { transactionId });
  const { status } = await deliver(app, event);
  if (status !== 200) throw new Error(`the response is ${status}`);
  await settled(app);
}
const expectations = app.get(PaymentExpectations);
await expectations.expect({ reference: '3' });
while ((await expectations.get('3')).state !== 'fulfilled') await turn();
await settled(app);
await app.get(PaymentsApiService).getTransaction('t-1');
const done = await app.get(PaymentInbox).list({ state: 'done' });
console.log(`${done.events.length} events are done`);
await app.close();
await pool?.end();
console.log(`called: ${[...called].join(', ')}`);
