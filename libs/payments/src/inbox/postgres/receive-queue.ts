import { PaymentsError } from '../../errors/payments-error.js';
import type { IncomingEvent, StoreReceipt } from '../store/inbox-store.js';
import { isAboutValues } from './connection/database-failure.js';

/** Statements at a time. More than one, so that one that waits for another process does not stall the others. */
const MAX_STATEMENTS = 2;
/** What one statement stores at most, except for a single receive that is larger. */
const MAX_EVENTS = 500;
const MAX_BYTES = 4 * 1024 ** 2;
/**
 * A second statement starts only if the first is smaller than this or if at least `MANY` events wait: what waits for the
 * first shares its statement and its commit with more events, and costs the server less.
 */
const FEW = 8;
const MANY = 100;
/** What waits at most if the database is slower than the service. */
const MAX_WAITING_EVENTS = 20_000;
const MAX_WAITING_BYTES = 256 * 1024 ** 2;

interface Waiting {
  readonly events: readonly IncomingEvent[];
  readonly bytes: number;
  readonly resolve: (receipts: StoreReceipt[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit. A receive that comes alone is stored at once; those that come in one turn of the event loop, or while
 * statements run, are stored together, so that they share a wait for the disk.
 */
export class ReceiveQueue {
  #waiting: Waiting[] = [];
  #waitingEvents = 0;
  #waitingBytes = 0;
  #statements = 0;
  #eventsUnderWay = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  constructor(
    private readonly store: (events: readonly IncomingEvent[]) => Promise<StoreReceipt[]>,
  ) {}

  receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    if (events.length === 0) return Promise.resolve([]);
    const bytes = events.reduce((sum, { raw }) => sum + raw.length, 0);
    const full =
      this.#waitingEvents + events.length > MAX_WAITING_EVENTS ||
      this.#waitingBytes + bytes > MAX_WAITING_BYTES;
    if (full && this.#waiting.length > 0) {
      return Promise.reject(
        new PaymentsError(
          'inbox_full',
          `${this.#waitingEvents} events wait to be stored: the database is slower than they come.`,
        ),
      );
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ events, bytes, resolve, reject });
      this.#count(events.length, bytes);
      this.#pump();
    });
  }

  /** Resolves when nothing waits and no statement runs. */
  async drained(): Promise<void> {
    if (this.#statements + this.#waiting.length > 0)
      await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Starts statements at the end of this turn. */
  #pump(): void {
    if (this.#scheduled || this.#statements === MAX_STATEMENTS) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#mayStart()) void this.#run(this.#take());
      if (this.#statements === 0) for (const resolve of this.#idle.splice(0)) resolve();
    });
  }

  #mayStart(): boolean {
    if (this.#waiting.length === 0 || this.#statements === MAX_STATEMENTS) return false;
    return this.#statements === 0 || this.#eventsUnderWay < FEW || this.#waitingEvents >= MANY;
  }

  /** Never rejects. */
  async #run(group: readonly Waiting[]): Promise<void> {
    const events = group.reduce((sum, one) => sum + one.events.length, 0);
    this.#statements += 1;
    this.#eventsUnderWay += events;
    try {
      await this.#storeTogether(group);
    } catch (error) {
      for (const { reject } of group) reject(error);
      // Those that wait would fail too, each after a timeout of its own.
      if (!isAboutValues(error)) this.#rejectWaiting(error);
    }
    this.#statements -= 1;
    this.#eventsUnderWay -= events;
    this.#pump();
  }

  async #storeTogether(group: readonly Waiting[]): Promise<void> {
    try {
      const receipts = await this.store(group.flatMap(({ events }) => events));
      let from = 0;
      for (const { events, resolve } of group)
        resolve(receipts.slice(from, (from += events.length)));
    } catch (error) {
      if (group.length === 1 || !isAboutValues(error)) throw error;
      // One of them cannot be stored, which must not fail the others.
      for (const one of group) await this.#storeTogether([one]).catch(one.reject);
    }
  }

  /** What waits, as far as one statement stores it. */
  #take(): Waiting[] {
    let events = 0;
    let bytes = 0;
    const end = this.#waiting.findIndex((next) => {
      events += next.events.length;
      bytes += next.bytes;
      return events > MAX_EVENTS || bytes > MAX_BYTES;
    });
    const group = this.#waiting.splice(0, end === -1 ? Infinity : Math.max(1, end));
    for (const one of group) this.#count(-one.events.length, -one.bytes);
    return group;
  }

  #rejectWaiting(error: unknown): void {
    for (const one of this.#waiting.splice(0)) {
      this.#count(-one.events.length, -one.bytes);
      one.reject(error);
    }
  }

  #count(events: number, bytes: number): void {
    this.#waitingEvents += events;
    this.#waitingBytes += bytes;
  }
}
