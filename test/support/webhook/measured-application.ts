// An application with a SQLite inbox, which measures its memory.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { PaymentsModule } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { serveCommands } from '../processes/command-process.ts';

/** Options of the application. */
export interface MeasuredSetup {
  readonly adapter: string;
  /** The SQLite file of its inbox. */
  readonly file: string;
  readonly payments: PaymentsModuleOptions;
}

let baseRss = 0;
let peakRss = 0;
setInterval(() => (peakRss = Math.max(peakRss, process.memoryUsage.rss())), 20).unref();
// With `--expose-gc`, the measured memory does not depend on when V8 collects garbage.
setInterval(() => globalThis.gc?.(), 100).unref();

serveCommands(null, {
  /** Starts the application, and returns its address. */
  async start({ adapter, file, payments }: MeasuredSetup): Promise<string> {
    class App {}
    const inbox = sqliteInbox({ file, allowOldSqlite: true });
    Module({ imports: [PaymentsModule.forRoot({ ...payments, inbox })] })(App);
    const http = adapter === 'express' ? new ExpressAdapter() : new FastifyAdapter();
    const app = await NestFactory.create(App, http, { logger: false });
    await app.listen(0, '127.0.0.1');
    return app.getUrl();
  },
  /** Starts measuring. */
  begin() {
    baseRss = peakRss = process.memoryUsage.rss();
  },
  /** By how many MB the resident memory has grown at most since `begin`. */
  growth: () => (peakRss - baseRss) / 1e6,
});
