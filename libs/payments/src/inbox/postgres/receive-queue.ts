import { PaymentsError } from '../../payments.errors.js';
import type { IncomingEvent, StoreReceipt } from '../inbox-store.js';
import { isAboutValues } from './connection/database-failure.js';

/** Statements under way at a time. More than one, so that one that waits for another instance stalls no others. */
const MAX_FLIGHTS = 2;
/** What one statement takes at the most, but for a single receive that is larger. */
const MAX_EVENTS = 500;
const MAX_BYTES = 4 * 1024 ** 2;
/**
 * What is at least twice this is divided: the server works on both halves at once. With less, what each
 * statement costs by itself is more than that saves.
 */
const MIN_SHARE = 32;
/** What waits at the most: the database is slower than the service, and memory is finite. */
const MAX_WAITING_EVENTS = 20_000;
const MAX_WAITING_BYTES = 256 * 1024 ** 2;

interface Waiting {
  readonly events: readonly IncomingEvent[];
  readonly bytes: number;
  readonly resolve: (receipts: StoreReceipt[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit. A receive that comes alone is stored at once; those that come in one turn of the event loop, or
 * while statements are under way, are stored together, so that a wait for the disk is shared by all of them.
 */
export class ReceiveQueue {
  #waiting: Waiting[] = [];
  #waitingEvents = 0;
  #waitingBytes = 0;
  #flights = 0;
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

  /** Resolves when nothing is under way. */
  async drained(): Promise<void> {
    if (this.#flights + this.#waiting.length > 0)
      await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** At the end of this turn. */
  #pump(): void {
    if (this.#scheduled || this.#flights === MAX_FLIGHTS) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#flights < MAX_FLIGHTS && this.#waiting.length > 0) void this.#fly(this.#take());
      if (this.#flights === 0) for (const resolve of this.#idle.splice(0)) resolve();
    });
  }

  /** Never rejects. */
  async #fly(group: readonly Waiting[]): Promise<void> {
    this.#flights += 1;
    try {
      await this.#storeTogether(group);
    } catch (error) {
      for (const { reject } of group) reject(error);
      // What waits would only find out the same, each after a time-out of its own.
      if (!isAboutValues(error)) this.#rejectWaiting(error);
    }
    this.#flights -= 1;
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
      // One of them cannot be stored: that must not be the others' fault.
      for (const one of group) await this.#storeTogether([one]).catch(one.reject);
    }
  }

  /** An even share of what waits, for each statement that may begin now. */
  #take(): Waiting[] {
    const free = MAX_FLIGHTS - this.#flights;
    const shares = Math.max(1, Math.min(free, Math.floor(this.#waitingEvents / MIN_SHARE)));
    const most = Math.min(MAX_EVENTS, Math.ceil(this.#waitingEvents / shares));
    let events = 0;
    let bytes = 0;
    const end = this.#waiting.findIndex((next) => {
      events += next.events.length;
      bytes += next.bytes;
      return events > most || bytes > MAX_BYTES;
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
