import { inspect } from 'node:util';
import { Logger } from '@nestjs/common';
import {
  PaymentsError,
  integerOption,
  optionsInvalid,
  shown,
} from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  ActivityMinute,
  EventPage,
  HandlerCatalog,
  HeartbeatResult,
  InboxDefinition,
  InboxStats,
  InboxStore,
  IncomingEvent,
  StoredEvent,
  StoreReceipt,
  WorkerRegistration,
} from '../store/inbox-store.js';
import { addCopy, EventIndex } from './event-index.js';
import type { MemoryLimits } from './event-index.js';
import { MemoryDeliveries } from './memory-deliveries.js';
import {
  capped,
  countDeliveries,
  describeEvent,
  MemoryActivity,
  pageOf,
} from './memory-queries.js';
import { MemoryEvent } from './memory-rows.js';
import { MemoryWorkers } from './memory-workers.js';

/** Options of {@link memoryInbox}. */
export interface MemoryInboxOptions {
  /**
   * Maximum number of events to keep, finished ones included. If the inbox is full, a new event replaces the event that
   * finished first; if no event has finished, the response to the webhook request is 503. 1 to 1,000,000. Default 10,000.
   */
  maxEvents?: number;
  /** Maximum number of bytes of bodies to keep. 1 KiB to 16 GiB. Default 64 MiB. */
  maxBytes?: number;
  /**
   * How many milliseconds after an event has finished the inbox forgets it. Until then it recognises duplicates. An
   * event has finished if all its deliveries are done, dead or skipped: dead letters are forgotten too.
   * 1,000 to 2,592,000,000 (30 days). Default 86,400,000 (a day).
   */
  retentionMs?: number;
  /** Whether to log no warning about this inbox under `NODE_ENV=production`. Default `false`. */
  acceptInProduction?: boolean;
}

const WARNING =
  'The memory inbox is in use under NODE_ENV=production. It keeps events only in this process. A restart loses ' +
  'them: the handlers run again for a copy of an event that was handled before, and a delivery that waits for a ' +
  'retry is lost unless the sender repeats the event. Several processes do not recognise duplicates of each other. ' +
  'Durable inboxes are sqliteInbox() for one machine and postgresInbox() for any number. If the memory inbox is ' +
  'enough, memoryInbox({ acceptInProduction: true }) turns this warning off.';

/**
 * Keeps events in the memory of this process. It needs no set-up, and a restart loses everything. No payment
 * is lost by that: the sender gets a 2xx response only after every handler has succeeded, and repeats the event
 * otherwise. But the handlers run again for a copy of an event from before the restart, even if an attacker replays it.
 * Events of any age are handled unless `webhook.maxAgeMs` is set, because a late event is likelier than a replay.
 *
 * Use it for tests, for development, and for applications whose handlers are quick and idempotent. Under
 * `NODE_ENV=production` it logs one warning at boot.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function memoryInbox(options: MemoryInboxOptions = {}): InboxDefinition {
  const limits: MemoryLimits = Object.freeze({
    maxEvents: integerOption('memoryInbox maxEvents', options.maxEvents, {
      default: 10_000,
      min: 1,
      max: 1_000_000,
      unit: 'events',
    }),
    maxBytes: integerOption('memoryInbox maxBytes', options.maxBytes, {
      default: 64 * 1024 ** 2,
      min: 1024,
      max: 16 * 1024 ** 3,
      unit: 'bytes',
    }),
    retentionMs: integerOption('memoryInbox retentionMs', options.retentionMs, {
      default: 86_400_000,
      min: 1000,
      max: 30 * 86_400_000,
      unit: 'milliseconds',
    }),
  });
  const { acceptInProduction = false } = options;
  if (typeof acceptInProduction !== 'boolean') {
    throw optionsInvalid(
      `"memoryInbox acceptInProduction" must be true or false; it is ${shown(acceptInProduction)}.`,
    );
  }
  return {
    name: 'memory',
    create: (runtime) => {
      if (runtime.environment === 'production' && !acceptInProduction) {
        new Logger('PaymentInbox').warn(WARNING);
      }
      return new MemoryStore(limits, runtime);
    },
  };
}

/** The store of `memoryInbox()`. Due times and heartbeats use the monotonic clock, which the wall clock cannot move. */
export class MemoryStore extends MemoryDeliveries implements InboxStore<never> {
  readonly capabilities = Object.freeze({
    durable: false,
    shared: false,
    transactional: false,
    ownClock: false,
  });
  readonly #workers: MemoryWorkers;
  readonly #activity = new MemoryActivity();
  #seq = 0;

  constructor(limits: MemoryLimits, runtime: PaymentsRuntime) {
    super(new EventIndex(limits), runtime);
    this.#workers = new MemoryWorkers(runtime);
  }

  // These two keep bodies and headers of events out of logs.
  [inspect.custom](): string {
    return 'MemoryStore {}';
  }

  toJSON(): object {
    return {};
  }

  async open(): Promise<void> {}

  async close(): Promise<void> {}

  async register(worker: WorkerRegistration): Promise<HandlerCatalog> {
    this.#workers.register(worker);
    return this.#workers.catalog();
  }

  async heartbeat(id: string): Promise<HeartbeatResult> {
    const retired = this.#workers.heartbeat(id);
    for (const row of this.running.values()) {
      if (!this.#workers.find(row.worker)) this.free(row, !retired.includes(row.worker));
    }
    const worker = this.#workers.find(id);
    const handlers = this.unpaused(worker?.handlers.map(({ name }) => name) ?? []);
    const suspects = handlers.some((handler) => handler.suspects.size > 0);
    return { alive: worker !== undefined, suspects };
  }

  async retire(id: string, graceMs: number): Promise<void> {
    const isRunning = [...this.running.values()].some(({ worker }) => worker === id);
    this.#workers.retire(id, isRunning ? graceMs : null);
  }

  async catalog(): Promise<HandlerCatalog> {
    return this.#workers.catalog();
  }

  async forgetHandler(name: string): Promise<number | null> {
    if (!this.#workers.forget(name)) return null;
    const rows = [...this.events.all()].flatMap(({ deliveries }) => deliveries);
    return this.skipRows(rows.filter(({ handler }) => handler.name === name));
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const [now, wallMs] = [this.runtime.monotonic(), this.runtime.now()];
    this.events.forgetExpired(now);
    const added: MemoryEvent[] = [];
    const received = events.map((event) => {
      const row = new MemoryEvent(event, wallMs, now, (this.#seq += 1));
      const original = this.events.original(row);
      const isNew = original === undefined && event.catalogVersion === this.#workers.version;
      if (isNew) this.events.add(row);
      if (isNew) added.push(row);
      return { event, row, original, isNew };
    });
    this.events.makeRoom(added);
    const receipts = received.map(({ event, row, original, isNew }): StoreReceipt => {
      if (isNew) return this.#addDeliveries(event, row);
      const known = { id: original?.fixed.id ?? event.id, claimed: [], pending: false };
      return { outcome: original ? addCopy(original, row) : 'outdated', ...known };
    });
    if (receipts.some(({ pending }) => pending)) this.wake();
    return receipts;
  }

  async commit(): Promise<never> {
    throw commitUnsupported();
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const row = this.events.find(company, id);
    return row && describeEvent(row, this.#toDate, true);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return pageOf(this.events, query, this.#toDate);
  }

  async stats(): Promise<InboxStats> {
    const { oldestUnfinished: oldest, undelivered } = this.events;
    return {
      deliveries: countDeliveries(this.handlers.values()),
      unhandled: capped(undelivered.unhandled.size),
      stale: capped(undelivered.stale.size),
      oldestPendingMs: oldest ? this.runtime.monotonic() - oldest.receivedAt : null,
      paused: [...this.paused].toSorted(),
    };
  }

  async summarize(): Promise<void> {
    this.#activity.summarize(this.events.all(), this.runtime.now());
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return this.#activity.last(minutes);
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    const wallMs = this.runtime.now();
    this.#activity.prune(wallMs);
    return this.events.prune(request, this.runtime.monotonic(), wallMs);
  }

  #addDeliveries({ id, handlers, assign }: IncomingEvent, row: MemoryEvent): StoreReceipt {
    const claimed = handlers
      .map((name) =>
        this.deliver(row, name, 0, assign?.handlers.includes(name) ? assign.worker : undefined),
      )
      .filter((delivery) => delivery !== null);
    this.events.update(row, row.receivedAt);
    return { outcome: 'stored', id, claimed, pending: claimed.length < handlers.length };
  }

  /** A time of the monotonic clock, on the wall clock. */
  readonly #toDate = (monotonicMs: number): Date =>
    new Date(this.runtime.now() + monotonicMs - this.runtime.monotonic());
}

/** The error of `context.commit()` with an inbox that has no transactions. */
export function commitUnsupported(): PaymentsError {
  return new PaymentsError(
    'commit_unsupported',
    'The memory inbox has no transaction to commit in. Keep the inbox in the database of your effects, ' +
      'or let the return of the handler settle the delivery.',
  );
}
