import 'reflect-metadata';
import { Module } from '@nestjs/common';
import type { INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { fixed, PaymentExpectations, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import { createEngineAdapter } from 'test-postgres/engines/create-engine-adapter';
import type {
  InboxDefinition,
  PaymentsModuleOptions,
  PaymentsRuntime,
  StoredEvent,
  StoredExpectation,
} from 'nestjs-payments';
import { Handlers, NewHandlers, SETUP } from './application-handlers.js';
import { monotonicMs } from './application-protocol.js';
import type {
  ApplicationSetup,
  FromApplication,
  ReportedEvent,
  ReportedExpectation,
  ToApplication,
} from './application-protocol.js';
import { Purchases, PurchasesController, RECONCILE } from './application-purchases.js';
import { Journal } from './journal.js';
import { observedInbox } from './observed-inbox.js';

// An application process of a chaos run: `node application.js <setup>`, with an IPC channel to the chaos runner.

/** The delay of the timer of the event-loop watch from which the event loop counts as blocked, in milliseconds. */
const BLOCKED_MS = 100;

const setup = JSON.parse(process.argv[2]!) as ApplicationSetup;
const journal = new Journal(setup.journal);
const handlers = setup.version === 1 ? Handlers : NewHandlers;
/** A gateway only hands events over. */
const isGateway = setup.engine !== null && setup.engine.service === undefined;
let clockOffsetMs = 0;

const runtime: PaymentsRuntime = {
  now: () => Date.now() + clockOffsetMs,
  monotonic: () => performance.now(),
  random: () => Math.random(),
  schedule: (ms, callback) => {
    const timer = setTimeout(callback, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

class Application {}
Module({
  imports: [
    PaymentsModule.forRoot({
      baseUrl: setup.serviceUrl,
      clientId: 'chaos',
      clientSecret: 'chaos',
      webhookSecret: setup.webhookSecret,
      worker: {
        leaseMs: setup.leaseMs,
        drainMs: setup.drainMs,
        timeoutMs: 30_000,
        // Enough attempts for an outage of the database, because only an event that kills its process may become a dead
        // letter.
        retry: fixed([50, 100, 200, 400, ...Array<number>(100).fill(800)]),
      },
      reconcile: RECONCILE,
      inbox: observedInbox(await inbox(), journal),
      runtime,
      ...(await engine()),
    }),
  ],
  controllers: [PurchasesController],
  providers: [
    { provide: SETUP, useValue: setup },
    { provide: Journal, useValue: journal },
    ...(isGateway ? [] : [handlers]),
    Purchases,
  ],
})(Application);

watchEventLoop();
// The chaos runner has ended without ending this process.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
const app = await NestFactory.create(Application, new ExpressAdapter(), {
  abortOnError: false,
  logger: ['error', 'warn'],
});
app.enableShutdownHooks(['SIGTERM'], { useProcessExit: true });
await app.listen(0, '127.0.0.1');
process.on('message', (message) => void handleMessage(app, message as ToApplication));
send({ type: 'ready', url: await app.getUrl() });

async function inbox(): Promise<InboxDefinition> {
  if (setup.store === 'sqlite') {
    return sqliteInbox({ file: setup.database, allowOldSqlite: true, busyTimeoutMs: 2000 });
  }
  const { postgresInbox } = await import('nestjs-payments/postgres');
  return postgresInbox({
    connectionString: setup.database,
    poolSize: 4,
    connectTimeoutMs: 2000,
    statementTimeoutMs: 3000,
    pollMs: 200,
  });
}

async function engine(): Promise<Pick<PaymentsModuleOptions, 'relay' | 'source'>> {
  if (setup.engine === null) return {};
  const adapter = await createEngineAdapter(setup.engine);
  return isGateway ? { relay: adapter } : { source: adapter };
}

async function handleMessage(app: INestApplication, message: ToApplication): Promise<void> {
  switch (message.type) {
    case 'clock':
      clockOffsetMs += message.offsetMs;
      return;
    case 'block': {
      const end = performance.now() + message.ms;
      while (performance.now() < end);
      return;
    }
    case 'proceed':
      return app.get<Handlers>(handlers).proceed();
    case 'unfinished':
      return respond(message.request, () => unfinished(app.get(PaymentInbox)));
    case 'report':
      return respond(message.request, () => report(app.get(PaymentInbox)));
    case 'expectations':
      return respond(message.request, () => reportExpectations(app.get(PaymentExpectations)));
    case 'sweep':
      return respond(message.request, () =>
        app.get(PaymentExpectations).sweep({ from: new Date(0), to: new Date('2100-01-01') }),
      );
    case 'ask':
      return respond(message.request, () => ask(app.get(PaymentExpectations)));
  }
}

async function respond(request: number, work: () => Promise<unknown>): Promise<void> {
  try {
    send({ type: 'response', request, value: await work() });
  } catch (error) {
    send({ type: 'error', request, error: String(error) });
  }
}

/** Returns the number of deliveries that are pending or running. */
async function unfinished(inbox: PaymentInbox): Promise<number> {
  const { deliveries } = await inbox.stats();
  return deliveries.reduce((sum, { state, count }) => sum + (state === 'dead' ? 0 : count), 0);
}

async function report(inbox: PaymentInbox): Promise<ReportedEvent[]> {
  const events: StoredEvent[] = [];
  let after: string | null = null;
  do {
    const page = await inbox.list({ order: 'oldest', limit: 500, after });
    events.push(...(await Promise.all(page.events.map(async ({ id }) => (await inbox.get(id))!))));
    after = page.next;
  } while (after !== null);
  return events.map(({ id, repeats, deliveries }) => ({
    id,
    repeats: repeats.map((repeat) => repeat.id),
    deliveries: deliveries.map(({ handler, state, attempts, history }) => ({
      handler,
      state,
      attempts,
      history: history.map(({ outcome, error }) => ({ outcome, error })),
    })),
  }));
}

async function reportExpectations(
  expectations: PaymentExpectations,
): Promise<ReportedExpectation[]> {
  const found: StoredExpectation[] = [];
  let after: string | null = null;
  do {
    const page = await expectations.list({ limit: 1000, after });
    found.push(...page.expectations);
    after = page.next;
  } while (after !== null);
  return found.map(({ reference, state, fulfilled, contradiction, polls }) => ({
    reference,
    state,
    fulfilledBy: fulfilled?.by ?? null,
    eventType: fulfilled?.eventType ?? null,
    contradiction,
    polls,
  }));
}

async function ask(expectations: PaymentExpectations): Promise<number> {
  const all = await reportExpectations(expectations);
  return expectations.askNow(all.filter(({ state }) => state === 'fulfilled'));
}

function watchEventLoop(): void {
  let last = monotonicMs();
  setInterval(() => {
    const now = monotonicMs();
    if (now - last > BLOCKED_MS) journal.write({ kind: 'event-loop-blocked', at: last, end: now });
    last = now;
  }, 20).unref();
}

function send(message: FromApplication): void {
  process.send?.(message);
}
