// A merchant's application in a process of its own, so that a test can kill it: `node merchant.mjs <setup>`.
// The setup is JSON: { kind, where, schema, worker, webhookSecret, hooks, slowMs, port }. What a handler does is in the
// event itself (`data.do`). It reports what happened on the standard output, synchronously: a line that was written
// is true, whatever happens next.
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
const tell = (...words) => void writeSync(1, `${words.join(' ')}\n`);
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

/** What an event may ask for. */
const actions = {
  /** @param {{ id: string }} event */
  book: (event, context) => book(context, event.id),
  nothing: () => {},
  die,
  'book and die': async (event, context) => {
    await book(context, event.id);
    die();
  },
  'die when told': async () => {
    await told.promise;
    die();
  },
  /** Takes `data.ms` milliseconds, or those of the setup. */
  'book slowly': async (event, context) => {
    await new Promise((resolve) => setTimeout(resolve, setup.slowMs ?? event.data.ms));
    await book(context, event.id);
  },
  'book when told': async (event, context) => {
    await told.promise;
    await book(context, event.id);
  },
  /** Never ends, and ignores its signal. */
  hang: () => new Promise(() => {}),
  /** Blocks the event loop for three times its lease, then commits. */
  block: async (event, context) => {
    if (context.attempt === 1) {
      const end = performance.now() + 3000;
      while (performance.now() < end);
    }
    await book(context, event.id).catch((error) => {
      tell('refused', event.id, error.code);
      throw error;
    });
  },
};
const told = Promise.withResolvers();

class Orders {
  async handle(event, context) {
    tell('ran', event.id, context.attempt);
    await actions[event.data.do](event, context);
    tell('ended', event.id);
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
process.stdin.on('data', () => told.resolve());
// The test has ended without ending this process.
process.stdin.on('end', die);
process.stdin.unref?.();
await app.listen(setup.port ?? 0, '127.0.0.1');
tell('ready', await app.getUrl());
