// A merchant's application: a directory of companies, the SQLite inbox, one handler, and calls to the payments service.
import 'reflect-metadata';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import {
  OnPaymentEvent,
  PaymentInbox,
  PaymentsApiService,
  PaymentsError,
  PaymentsModule,
} from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type {
  Company,
  PaymentEvent,
  PaymentEventContext,
  PaymentsModuleOptions,
} from 'nestjs-payments';
import { serveCommands } from '../support/processes/command-process.ts';
import { COMPANIES, eventKey } from './webhook-requests.ts';

/** Handled events since the start, and resource usage since the command `begin`. */
export interface ApplicationReport {
  /** Number of handler attempts by event. */
  readonly handled: Readonly<Record<string, number>>;
  readonly rssGrowthMb: number;
  readonly loopDelayP99Ms: number;
  readonly unhandledRejections: number;
}

/** How long one call to the payments service may take, in milliseconds. */
export const CALL_DEADLINE_MS = 3000;

const handled = new Map<string, number>();
let unhandledRejections = 0;
let baseRss = 0;
let peakRss = 0;
const loopDelay = monitorEventLoopDelay({ resolution: 10 });
/** Address of the hostile payments service. Each request to `/call` sets it. */
let service = 'http://127.0.0.1:9';

process.on('unhandledRejection', () => (unhandledRejections += 1));
setInterval(() => (peakRss = Math.max(peakRss, process.memoryUsage.rss())), 20).unref();
// With `--expose-gc`, the measured memory does not depend on when V8 collects garbage.
setInterval(() => globalThis.gc?.(), 100).unref();

class Orders {
  handle(event: PaymentEvent, { company }: PaymentEventContext): void {
    const key = eventKey(company, event.id);
    handled.set(key, (handled.get(key) ?? 0) + 1);
  }
}
const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'handle')!;
OnPaymentEvent('*', { name: 'orders' })(Orders.prototype, 'handle', method);
Injectable()(Orders);

/** Finds companies by id, ignoring case, as a database with a case-insensitive collation does. */
async function findCompany(id: string): Promise<Company | undefined> {
  await new Promise((resolve) => setTimeout(resolve, 2));
  const credentials = { clientId: 'client', clientSecret: 'client-secret-3kT9' };
  // Companies of the hostile service: `caller`, and `broken-token-N`, whose token endpoint does not work.
  if (/^(caller|broken-token-\d+)$/.test(id)) {
    const baseUrl = id === 'caller' ? service : `${service}/${id}`;
    return { id, ...credentials, webhookSecret: `whsec-${id}-unused`, baseUrl };
  }
  const found = COMPANIES.find((company) => company.id.toLowerCase() === id.toLowerCase());
  return found && { id: found.id, ...credentials, webhookSecret: found.secret };
}

/** Options of the application. */
export interface ApplicationSetup {
  readonly adapter: string;
  /** The SQLite file of its inbox. */
  readonly file: string;
  readonly webhook?: PaymentsModuleOptions['webhook'];
}

async function start({ adapter, file, webhook = {} }: ApplicationSetup): Promise<number> {
  class App {}
  Module({
    imports: [
      PaymentsModule.forRoot({
        baseUrl: 'http://127.0.0.1:9',
        companies: { find: findCompany },
        webhook,
        inbox: sqliteInbox({ file, allowOldSqlite: true }),
        api: { deadlineMs: CALL_DEADLINE_MS, attemptTimeoutMs: 1500, tokenTimeoutMs: 1500 },
      }),
    ],
    providers: [Orders],
  })(App);
  const http = adapter === 'express' ? new ExpressAdapter() : new FastifyAdapter();
  const app = await NestFactory.create(App, http);
  const payments = app.get(PaymentsApiService);
  const inbox = app.get(PaymentInbox);
  serveCalls(app.getHttpAdapter(), payments);
  await app.listen(0, '127.0.0.1');
  settled = async () => {
    while ((await inbox.stats()).oldestPendingMs !== null) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  return Number(new URL(await app.getUrl()).port);
}

/** Result of a call to the hostile service. */
export interface CallResult {
  readonly outcome: 'value' | 'PaymentsError' | 'other error';
  readonly detail: string;
  readonly elapsedMs: number;
}

/** `GET /call?company=…&scenario=…&service=…` calls the payments service and responds with a {@link CallResult}. */
function serveCalls(http: { get: unknown; reply: unknown }, payments: PaymentsApiService): void {
  const adapter = http as {
    get(path: string, handler: (request: { query: never }, response: unknown) => unknown): void;
    reply(response: unknown, body: unknown, status: number): unknown;
  };
  adapter.get('/call', async ({ query }, response) => {
    const parameters = query as { company: string; scenario: string; service: string };
    service = parameters.service;
    const startMs = performance.now();
    let result: Omit<CallResult, 'elapsedMs'>;
    try {
      await payments.forCompany(parameters.company).getTransaction(parameters.scenario);
      result = { outcome: 'value', detail: '' };
    } catch (error) {
      const typed = error instanceof PaymentsError;
      const detail = typed ? error.code : String(error);
      result = { outcome: typed ? 'PaymentsError' : 'other error', detail };
    }
    await adapter.reply(response, { ...result, elapsedMs: performance.now() - startMs }, 200);
  });
}

let settled = async (): Promise<void> => {};

serveCommands(null, {
  start,
  /** Starts measuring. */
  begin() {
    baseRss = peakRss = process.memoryUsage.rss();
    loopDelay.enable();
  },
  async report(): Promise<ApplicationReport> {
    loopDelay.disable();
    await settled();
    return {
      handled: Object.fromEntries(handled),
      rssGrowthMb: (peakRss - baseRss) / 1e6,
      loopDelayP99Ms: loopDelay.percentile(99) / 1e6,
      unhandledRejections,
    };
  },
});
