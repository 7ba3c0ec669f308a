import { PaymentsError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { IncomingEvent, SettleResult, StoreReceipt } from '../../inbox/store/inbox-store.js';
import { isValueError, PostgresInboxError } from './connection/database-connection.js';
import type { LeaseOutcome } from './sql/settle.js';

/** Maximum number of events that one statement stores, except for a single receive with more events. */
const MAX_EVENTS = 500;
/** Maximum number of bytes of bodies that one statement stores, except for a single receive with more bytes. */
const MAX_BYTES = 4 * 1024 ** 2;
/** Maximum number of concurrent receive statements. If one waits for another process, the other one continues. */
const MAX_STATEMENTS = 2;
/**
 * A second statement starts only if the first one stores fewer events than `FEW_EVENTS` or at least `MANY_EVENTS` are
 * queued. Otherwise events wait for the first one to end: they share a larger statement, which costs the server less.
 */
const FEW_EVENTS = 8;
const MANY_EVENTS = 100;
/** Limits of events and bytes in the queue. They apply if the database is slower than the service. */
const MAX_QUEUED_EVENTS = 20_000;
const MAX_QUEUED_BYTES = 256 * 1024 ** 2;
/** Maximum number of outcomes that one statement writes. */
const MAX_OUTCOMES = 500;
/** How soon an outcome is written again if another transaction has locked the delivery, in milliseconds. */
const LOCKED_RETRY_MS = 10;

interface QueuedReceive {
  readonly events: readonly IncomingEvent[];
  readonly bytes: number;
  readonly resolve: (receipts: StoreReceipt[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit of receives: all receives of one turn of the event loop, and those that start while statements run, share a
 * statement and so a wait for the disk.
 */
export class ReceiveQueue {
  #queue: QueuedReceive[] = [];
  #queuedEvents = 0;
  #queuedBytes = 0;
  #runningStatements = 0;
  #runningEvents = 0;
  #scheduled = false;
  #onIdle: (() => void)[] = [];

  constructor(
    private readonly store: (events: readonly IncomingEvent[]) => Promise<StoreReceipt[]>,
  ) {}

  /** @throws PaymentsError `inbox_full`, having stored none of the events. */
  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    if (events.length === 0) return Promise.resolve([]);
    const bytes = events.reduce((sum, { raw }) => sum + raw.length, 0);
    const full =
      this.#queuedEvents + events.length > MAX_QUEUED_EVENTS ||
      this.#queuedBytes + bytes > MAX_QUEUED_BYTES;
    if (full && this.#queue.length > 0) {
      return Promise.reject(
        new PaymentsError(
          'inbox_full',
          `${this.#queuedEvents} events wait to be stored: the database is slower than the incoming events.`,
        ),
      );
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ events, bytes, resolve, reject });
      this.#count(events.length, bytes);
      this.#schedule();
    });
  }

  /** Resolves when the queue is empty and no statement runs. */
  async drained(): Promise<void> {
    if (this.#runningStatements + this.#queue.length > 0)
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Starts statements at the end of this turn of the event loop. */
  #schedule(): void {
    if (this.#scheduled || this.#runningStatements === MAX_STATEMENTS) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#mayStart()) void this.#run(this.#take());
      if (this.#runningStatements === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
  }

  #mayStart(): boolean {
    if (this.#queue.length === 0 || this.#runningStatements === MAX_STATEMENTS) return false;
    return (
      this.#runningStatements === 0 ||
      this.#runningEvents < FEW_EVENTS ||
      this.#queuedEvents >= MANY_EVENTS
    );
  }

  /** Never rejects. */
  async #run(group: readonly QueuedReceive[]): Promise<void> {
    const events = group.reduce((sum, queued) => sum + queued.events.length, 0);
    this.#runningStatements += 1;
    this.#runningEvents += events;
    try {
      await this.#storeTogether(group);
    } catch (error) {
      for (const { reject } of group) reject(error);
      // The queued receives would fail too, each after its own timeout.
      if (!isValueError(error)) this.#rejectQueue(error);
    }
    this.#runningStatements -= 1;
    this.#runningEvents -= events;
    this.#schedule();
  }

  async #storeTogether(group: readonly QueuedReceive[]): Promise<void> {
    try {
      const receipts = await this.store(group.flatMap(({ events }) => events));
      let from = 0;
      for (const { events, resolve } of group)
        resolve(receipts.slice(from, (from += events.length)));
    } catch (error) {
      if (group.length === 1 || !isValueError(error)) throw error;
      // One receive cannot be stored. The others must not fail because of it.
      for (const queued of group) await this.#storeTogether([queued]).catch(queued.reject);
    }
  }

  /** Takes as many receives from the queue as one statement stores. */
  #take(): QueuedReceive[] {
    let events = 0;
    let bytes = 0;
    const end = this.#queue.findIndex((next) => {
      events += next.events.length;
      bytes += next.bytes;
      return events > MAX_EVENTS || bytes > MAX_BYTES;
    });
    const group = this.#queue.splice(0, end === -1 ? Infinity : Math.max(1, end));
    for (const queued of group) this.#count(-queued.events.length, -queued.bytes);
    return group;
  }

  #rejectQueue(error: unknown): void {
    for (const queued of this.#queue.splice(0)) {
      this.#count(-queued.events.length, -queued.bytes);
      queued.reject(error);
    }
  }

  #count(events: number, bytes: number): void {
    this.#queuedEvents += events;
    this.#queuedBytes += bytes;
  }
}

interface QueuedOutcome {
  readonly outcome: LeaseOutcome;
  /** The time when the outcome was queued, on the monotonic clock. */
  readonly queuedAt: number;
  readonly resolve: (result: SettleResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit of outcomes: all outcomes of one turn of the event loop, and those that are queued while a statement runs,
 * share a statement and so a wait for the disk.
 */
export class SettleQueue {
  #queue: QueuedOutcome[] = [];
  #running = false;

  constructor(
    /** Resolves in the order of its argument; `null`: another transaction has locked the delivery. */
    private readonly settleAll: (
      outcomes: readonly LeaseOutcome[],
    ) => Promise<(SettleResult | null)[]>,
    /** How long another transaction may keep a delivery locked. */
    private readonly timeoutMs: number,
    private readonly runtime: Pick<PaymentsRuntime, 'monotonic' | 'schedule'>,
  ) {}

  /** Resolves once the outcome is committed. */
  settle(outcome: LeaseOutcome): Promise<SettleResult> {
    return new Promise((resolve, reject) => {
      this.#add({ outcome, queuedAt: this.runtime.monotonic(), resolve, reject });
    });
  }

  #add(queued: QueuedOutcome): void {
    this.#queue.push(queued);
    if (this.#running) return;
    this.#running = true;
    setImmediate(() => void this.#run());
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    while (this.#queue.length > 0) await this.#settleTogether(this.#queue.splice(0, MAX_OUTCOMES));
    this.#running = false;
  }

  /** Never rejects. */
  async #settleTogether(group: readonly QueuedOutcome[]): Promise<void> {
    try {
      const results = await this.settleAll(group.map(({ outcome }) => outcome));
      for (const [index, queued] of group.entries()) {
        const result = results[index];
        if (result) queued.resolve(result);
        else this.#retry(queued);
      }
    } catch (error) {
      if (group.length === 1 || !isValueError(error)) for (const { reject } of group) reject(error);
      // One outcome cannot be stored. The others must not fail because of it.
      else for (const queued of group) await this.#settleTogether([queued]);
    }
  }

  #retry(queued: QueuedOutcome): void {
    if (this.runtime.monotonic() - queued.queuedAt < this.timeoutMs) {
      this.runtime.schedule(LOCKED_RETRY_MS, () => this.#add(queued));
      return;
    }
    const { id, handler } = queued.outcome.lease;
    queued.reject(
      new PostgresInboxError(
        `The delivery of event ${id} to ${handler} could not be settled within ${this.timeoutMs} ms, because another ` +
          'transaction has locked its row.',
        null,
      ),
    );
  }
}
