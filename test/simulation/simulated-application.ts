import { COMPANIES } from '../../libs/payments/dist/companies/company.js';
import { PaymentsApiService } from '../../libs/payments/dist/api/payments-api.service.js';
import { PaymentExpectations } from '../../libs/payments/dist/expectations/payment-expectations.js';
import { Poller } from '../../libs/payments/dist/expectations/poller.js';
import {
  RECONCILE_OPTIONS,
  resolveReconcileOptions,
} from '../../libs/payments/dist/expectations/reconcile-options.js';
import { parseEnvelope } from '../../libs/payments/dist/events/payment-event.js';
import { HandlerRegistry } from '../../libs/payments/dist/events/handler-registry.js';
import { fixed } from '../../libs/payments/dist/events/retry-schedule.js';
import type { RetrySchedule } from '../../libs/payments/dist/events/retry-schedule.js';
import { BODY_CODEC } from '../../libs/payments/dist/inbox/store/body-codec.js';
import { InboxMaintenance } from '../../libs/payments/dist/inbox/operate/inbox-maintenance.js';
import { INBOX_STORE } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { InboxWorker } from '../../libs/payments/dist/inbox/work/inbox-worker.js';
import { PaymentInbox } from '../../libs/payments/dist/inbox/payment-inbox.js';
import {
  MAX_AGE_MS,
  RECEIVE_OPTIONS,
  resolveReceiveOptions,
} from '../../libs/payments/dist/inbox/receive/receive-options.js';
import { VerifiedEvent } from '../../libs/payments/dist/inbox/receive/event-receiver.js';
import {
  resolveWorkerOptions,
  WORKER_OPTIONS,
} from '../../libs/payments/dist/inbox/work/worker-options.js';
import { PAYMENTS_RUNTIME } from '../../libs/payments/dist/runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../../libs/payments/dist/telemetry/observers.js';
import { behave } from './handler-behaviour.ts';
import type { Behaviour, BehaviourTimes } from './handler-behaviour.ts';
import { Container } from './provider-container.ts';
import type { SimulatedDatabase } from './simulated-database.ts';
import type { AttemptJournal } from './attempt-journal.ts';
import { HANDLERS } from './scenario.ts';
import type { HandlerName } from './scenario.ts';
import { POLLED_TYPES } from './simulated-service.ts';
import type { SimulatedService } from './simulated-service.ts';
import type { SimulatedProcess } from './simulated-process.ts';

/** Times of the simulated application, in milliseconds. */
export interface ApplicationTimes extends BehaviourTimes {
  readonly leaseMs: number;
  readonly drainMs: number;
  readonly retry: RetrySchedule;
  /** The time for which a process is down between a crash and its restart. */
  readonly downMs: number;
  /** The time for which the sender waits before it repeats an event that was not acknowledged. */
  readonly resendMs: number;
  /** The time for which a process continues to run after its drain. */
  readonly closingMs: number;
  /** The duration of a slow store operation. */
  readonly slowMs: number;
  /** Delays of the polls of an expected payment. */
  readonly polls: readonly number[];
}

export const VIRTUAL_TIMES: ApplicationTimes = {
  workMs: 2_000,
  slowCommitMs: 15_000,
  timeoutMs: 20_000,
  leaseMs: 10_000,
  drainMs: 5_000,
  retry: fixed([1_000, 10_000, 60_000]),
  downMs: 1_000,
  resendMs: 10_000,
  closingMs: 3_000,
  slowMs: 7_000,
  polls: [1_000, 5_000, 30_000, 120_000],
};
/** Maximum number of concurrent attempts of one handler in one process. */
export const CONCURRENCY: Readonly<Record<HandlerName, number>> = {
  book: 3,
  mail: 2,
  log: 1,
  audit: 2,
};
/** The data of an event: what each handler does, attempt by attempt. */
type Scripts = Readonly<Record<string, readonly Behaviour[]>>;

/**
 * One version of the merchant's application in one process. It uses the package's own receiver, worker and maintenance.
 */
export class SimulatedApplication {
  /** The expected payments of the application. */
  readonly expectations: PaymentExpectations;
  readonly #inbox: PaymentInbox;
  readonly #worker: InboxWorker;
  readonly #maintenance: InboxMaintenance;

  readonly #store: InboxStore;
  readonly #database: SimulatedDatabase;
  #started = false;
  readonly #process: SimulatedProcess;
  readonly #times: ApplicationTimes;
  readonly #journal: AttemptJournal;

  constructor(
    process: SimulatedProcess,
    store: InboxStore,
    database: SimulatedDatabase,
    handlers: readonly HandlerName[],
    times: ApplicationTimes,
    journal: AttemptJournal,
    service: SimulatedService,
  ) {
    this.#process = process;
    this.#store = store;
    this.#database = database;
    this.#times = times;
    this.#journal = journal;

    const { leaseMs, timeoutMs, drainMs, retry } = times;
    const container = new Container([
      [INBOX_STORE, store],
      [PAYMENTS_RUNTIME, process.runtime],
      [WORKER_OPTIONS, resolveWorkerOptions({ leaseMs, timeoutMs, drainMs, retry })],
      [RECEIVE_OPTIONS, resolveReceiveOptions({}, POLLED_TYPES)],
      [RECONCILE_OPTIONS, resolveReconcileOptions(service.options(times.polls))],
      [PaymentsApiService, service.client(process, times.workMs)],
      [COMPANIES, { known: (id: string) => ({ id }) }],
      // The timestamps of replays are six years old.
      [MAX_AGE_MS, 4 * 365 * 86_400_000],
      [BODY_CODEC, null],
      [Observers, NO_OBSERVERS],
    ]);
    const registry = container.get(HandlerRegistry);
    for (const name of handlers) {
      registry.add({
        name,
        source: `Simulation.${name}`,
        patterns: HANDLERS[name],
        options: { concurrency: CONCURRENCY[name] },
        invoke: (event, context) => this.#run(event, context),
      });
    }
    container.get(Poller).register();
    this.expectations = container.get(PaymentExpectations);
    this.#worker = container.get(InboxWorker);
    this.#maintenance = container.get(InboxMaintenance);
    this.#inbox = container.get(PaymentInbox);
  }

  /** Whether the application receives webhook requests, which it does while its store is open. */
  get started(): boolean {
    return this.#started;
  }

  /** The API of the inbox for operators. */
  get inbox(): PaymentInbox {
    return this.#inbox;
  }

  /** Returns the time `ms` milliseconds from now, by the clock of the process. */
  in(ms: number): Date {
    return new Date(this.#process.runtime.now() + ms);
  }

  async start(): Promise<void> {
    await this.#store.open();
    this.#started = true;
    this.#worker.start(true);
    this.#maintenance.start();
  }

  async drain(): Promise<void> {
    this.#process.draining = true;
    await Promise.all([this.#worker.drain(), this.#maintenance.stop()]);
  }

  /** Receives an event. Resolves if the response is 2xx. */
  async receive(company: string, body: Buffer): Promise<void> {
    const arrivedAt = this.#process.runtime.monotonic();
    await this.#inbox.receive(new VerifiedEvent(company, parseEnvelope(body), body, arrivedAt));
  }

  readonly #run: Parameters<HandlerRegistry['add']>[0]['invoke'] = async (event, context) => {
    const { company, handler, attempt, signal } = context;
    const { transactionId } = event.data;
    const orderingKey = typeof transactionId === 'string' ? transactionId : null;
    const { id } = event;
    const process = this.#process;
    const run = this.#journal.begin({
      process,
      handler,
      company,
      id,
      orderingKey,
      attempt,
      signal,
    });
    try {
      // The event of an overdue payment has no scripts.
      const scripts = event.data['scripts'] as Scripts | undefined;
      const script = scripts?.[handler] ?? ['succeed'];
      const behaviour = script[Math.min(attempt, script.length) - 1]!;
      await behave(behaviour, process, this.#times, this.#database, event, context);
    } finally {
      run.ended = true;
    }
  };
}
