// A process with merchant applications, to test what an unhandled rejection does to a process. Arguments: the number of
// applications and the webhook secret. Prints "ready <url>…", executes the commands on its standard input, one a line, and
// prints "executed <command>" after each.
import 'reflect-metadata';
import { writeSync } from 'node:fs';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';

const [count, webhookSecret] = process.argv.slice(2);
/** @param {string} line */
const report = (line) => void writeSync(1, `${line}\n`);
const released = Promise.withResolvers();

/** Returns a promise that the handler does not await. It rejects after the command `release`. */
async function failLater() {
  await released.promise;
  throw new Error('left behind');
}

async function start() {
  class Orders {
    handle() {
      void failLater();
    }
  }
  const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'handle');
  OnPaymentEvent('*')(Orders.prototype, 'handle', method);
  Injectable()(Orders);
  class App {}
  Module({
    imports: [
      PaymentsModule.forRoot({
        baseUrl: 'http://127.0.0.1:9',
        clientId: 'client',
        clientSecret: 'secret',
        webhookSecret,
      }),
    ],
    providers: [Orders],
  })(App);
  const app = await NestFactory.create(App, new ExpressAdapter(), { logger: ['error', 'warn'] });
  await app.listen(0, '127.0.0.1');
  return app;
}

const apps = [];
for (let i = 0; i < Number(count); i += 1) apps.push(await start());

const commands = {
  release: () => released.resolve(),
  unrelated: () => void Promise.reject(new Error('unrelated error')),
  'unrelated text': () => void Promise.reject('only text'),
  listen: () =>
    process.on('unhandledRejection', (reason) => console.log(`listener saw ${reason.message}`)),
  close: () => Promise.all(apps.map((app) => app.close())),
  leave: async () => {
    await commands.close();
    process.stdin.unref();
  },
  ping: () => {},
};
/** @param {string} command */
async function execute(command) {
  await commands[command]();
  // Node handles unhandled rejections of this turn of the event loop before setImmediate() runs.
  setImmediate(() => report(`executed ${command}`));
}

process.stdin.on('data', (line) => void execute(String(line).trim()));
// The standard input ends if the test process ends first.
process.stdin.on('end', () => process.exit(1));
report(`ready ${(await Promise.all(apps.map((app) => app.getUrl()))).join(' ')}`);
