import { PaymentsError } from '../../errors/payments-error.js';

/**
 * While calls run, another call starts only if the running calls have fewer items than `FEW_ITEMS`, or if at least
 * `MANY_ITEMS` are queued. Otherwise the queued items wait until a call ends, because one larger call costs the
 * database less.
 */
const FEW_ITEMS = 8;
const MANY_ITEMS = 100;
/** Limits of one call. A single request with more items or bytes is written in a call of its own. */
const MAX_ITEMS = 500;
const MAX_BYTES = 4 * 1024 ** 2;
/** Limits of the queue, which grows if requests arrive faster than the database writes them. */
const MAX_QUEUED_ITEMS = 20_000;
const MAX_QUEUED_BYTES = 256 * 1024 ** 2;

export interface BatcherOptions<Item, Result> {
  /** Resolves with the results in the order of the items. */
  readonly call: (items: readonly Item[]) => Promise<readonly Result[]>;
  /** Maximum number of calls at the same time. If one call waits for another process, the other calls continue. */
  readonly maxCalls: number;
  readonly bytesOf: (item: Item) => number;
  /** Whether a value in one of the items caused the error, so that the other items can still be written. */
  readonly isValueError: (error: unknown) => boolean;
}

interface Request<Item, Result> {
  readonly items: readonly Item[];
  readonly bytes: number;
  readonly resolve: (results: Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Implements group commit. The requests of one turn of the event loop share one call, and therefore one wait for the
 * disk. The requests that arrive while other calls run also share one call.
 */
export class Batcher<Item, Result> {
  #queue: Request<Item, Result>[] = [];
  #queuedItems = 0;
  #queuedBytes = 0;
  #calls = 0;
  #calledItems = 0;
  #scheduled = false;
  #onIdle: (() => void)[] = [];

  constructor(private readonly options: BatcherOptions<Item, Result>) {}

  /**
   * Writes items in one call. Resolves with the results in the order of the items.
   *
   * @throws PaymentsError `inbox_full`; none of the items was written.
   */
  add(items: readonly Item[]): Promise<Result[]> {
    if (items.length === 0) return Promise.resolve([]);
    const bytes = items.reduce((sum, item) => sum + this.options.bytesOf(item), 0);
    const full =
      this.#queuedItems + items.length > MAX_QUEUED_ITEMS ||
      this.#queuedBytes + bytes > MAX_QUEUED_BYTES;
    if (full && this.#queue.length > 0) {
      return Promise.reject(
        new PaymentsError(
          'inbox_full',
          `${this.#queuedItems} writes wait for the database of the inbox, which is slower than the incoming events: try again later.`,
        ),
      );
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({ items, bytes, resolve, reject });
      this.#queuedItems += items.length;
      this.#queuedBytes += bytes;
      this.#schedule();
    });
  }

  async drained(): Promise<void> {
    if (this.#calls + this.#queue.length > 0)
      await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      while (this.#mayStart()) void this.#run(this.#take());
      if (this.#calls === 0) for (const resolve of this.#onIdle.splice(0)) resolve();
    });
  }

  #mayStart(): boolean {
    if (this.#queue.length === 0 || this.#calls === this.options.maxCalls) return false;
    return this.#calls === 0 || this.#calledItems < FEW_ITEMS || this.#queuedItems >= MANY_ITEMS;
  }

  #take(): Request<Item, Result>[] {
    let items = 0;
    let bytes = 0;
    const end = this.#queue.findIndex((next) => {
      items += next.items.length;
      bytes += next.bytes;
      return items > MAX_ITEMS || bytes > MAX_BYTES;
    });
    return this.#remove(end === -1 ? Infinity : Math.max(1, end));
  }

  #remove(count: number): Request<Item, Result>[] {
    const removed = this.#queue.splice(0, count);
    for (const { items, bytes } of removed) {
      this.#queuedItems -= items.length;
      this.#queuedBytes -= bytes;
    }
    return removed;
  }

  /** Never rejects. */
  async #run(requests: readonly Request<Item, Result>[]): Promise<void> {
    const items = requests.reduce((sum, request) => sum + request.items.length, 0);
    this.#calls += 1;
    this.#calledItems += items;
    try {
      await this.#writeTogether(requests);
    } catch (error) {
      // After an error of the database, the queued requests would fail too, each after its own timeout.
      const failed = this.options.isValueError(error) ? [] : this.#remove(Infinity);
      for (const { reject } of [...requests, ...failed]) reject(error);
    }
    this.#calls -= 1;
    this.#calledItems -= items;
    this.#schedule();
  }

  async #writeTogether(requests: readonly Request<Item, Result>[]): Promise<void> {
    const { call, isValueError } = this.options;
    try {
      const results = await call(requests.flatMap(({ items }) => items));
      let from = 0;
      for (const { items, resolve } of requests)
        resolve(results.slice(from, (from += items.length)));
    } catch (error) {
      if (requests.length === 1 || !isValueError(error)) throw error;
      // A value in one of the requests cannot be written. The other requests must not fail because of that request.
      for (const request of requests) {
        await this.#writeTogether([request]).catch((failure: unknown) => {
          // The database failed, so the next requests would fail too, each after its own timeout.
          if (!isValueError(failure)) throw failure;
          request.reject(failure);
        });
      }
    }
  }
}
