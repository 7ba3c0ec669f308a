// A merchant's application in a process of its own, so that a test can kill it: `node merchant.mjs <setup>`.
// The setup is JSON: { kind, where, schema, worker, webhookSecret, hooks, slowMs, port }. The event says in `data.do` what
// its handler does. The process reports each step on the standard output, synchronously, so that no line is lost by a crash.
import 'reflect-metadata';
import { writeSync } from 'node:fs';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';

/** @type {{ kind: string, where: string, schema: string, worker: object, webhookSecret: string, hooks: boolean, slowMs?: number, port: number }} */
const setup = JSON.parse(process.argv[2]);
/** @param {(string | number)[]} words */
const report = (...words) => void writeSync(1, `${words.join(' ')}\n`);
const die = () => process.kill(process.pid, 'SIGKILL');

async function inbox() {
  if (setup.kind === 'sqlite') return sqliteInbox({ file: setup.where, allowOldSqlite: true });
  const { postgresInbox } = await import('nestjs-payments/postgres');
  return postgresInbox({ connectionString: setup.where, schema: setup.schema });
}

/** Writes an effect with a commit. */
function book(context, id) {
  return context.commit((tx) =>
    setup.kind === 'sqlite'
      ? void tx.prepare('INSERT INTO effect (id) VALUES (?)').run(id)
      : tx.query(`INSERT INTO ${setup.schema}.effect (id) VALUES ($1)`, [id]),
  );
}

/** The actions of the handler, by the `data.do` of an event. */
const actions = {
  /** @param {{ id: string }} event */
  book: (event, context) => book(context, event.id),
  nothing: () => {},
  'book and die': async (event, context) => {
    await book(context, event.id);
    die();
  },
  'die on continue': async () => {
    await continued.promise;
    die();
  },
  /** Waits `setup.slowMs`, or else `data.ms`, and commits. */
  'book slowly': async (event, context) => {
    await new Promise((resolve) => setTimeout(resolve, setup.slowMs ?? event.data.ms));
    await book(context, event.id);
  },
  'book on continue': async (event, context) => {
    await continued.promise;
    await book(context, event.id);
  },
  /** Never ends, and ignores its signal. */
  hang: () => new Promise(() => {}),
};
const continued = Promise.withResolvers();

class Orders {
  async handle(event, context) {
    report('ran', event.id, context.attempt);
    await actions[event.data.do](event, context);
    report('ended', event.id);
  }
}
const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'handle');
OnPaymentEvent('*', { name: 'book' })(Orders.prototype, 'handle', method);
Injectable()(Orders);
class App {}
Module({
  imports: [
    PaymentsModule.forRoot({
      baseUrl: 'http://127.0.0.1:9',
      clientId: 'client',
      clientSecret: 'secret',
      webhookSecret: setup.webhookSecret,
      worker: setup.worker,
      inbox: await inbox(),
    }),
  ],
  providers: [Orders],
})(App);

const app = await NestFactory.create(App, new ExpressAdapter(), { logger: ['error', 'warn'] });
if (setup.hooks) app.enableShutdownHooks();
process.stdin.on('data', () => continued.resolve());
// The standard input ends if the test process ends first.
process.stdin.on('end', die);
process.stdin.unref?.();
await app.listen(setup.port ?? 0, '127.0.0.1');
report('ready', await app.getUrl());
