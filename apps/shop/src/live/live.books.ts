import { Injectable, Logger } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { Books } from '../books/books.js';
import type { LedgerTotals } from '../ledger/ledger.entry.js';
import type { OrderView } from '../orders/order.js';
import { Orders } from '../orders/orders.service.js';
import { WatchedValues } from './watched.values.js';
import type { ReadValues } from './watched.values.js';

/** How soon a page hears of what another instance of the shop has booked, in milliseconds. */
const EVERY_MS = 1000;

const LEDGER = 'ledger';

/** Orders and ledger as they stand, and as they change, whichever instance of the shop changes them. */
@Injectable()
export class LiveBooks {
  readonly #logger = new Logger(LiveBooks.name);
  readonly #orders: WatchedValues<OrderView>;
  readonly #ledger: WatchedValues<LedgerTotals>;
  #totals: { readonly version: string; readonly totals: LedgerTotals } | undefined;

  constructor(
    orders: Orders,
    private readonly books: Books,
  ) {
    this.#orders = this.#watched(async (references) => {
      const views = await orders.findAll(references);
      return new Map(views.map((view) => [view.reference, view]));
    });
    this.#ledger = this.#watched(async () => new Map([[LEDGER, await this.#readTotals()]]));
  }

  /** How an order stands, and how it does whenever that changes. Silent where there is no such order. */
  order(reference: string): Observable<OrderView> {
    return this.#orders.watch(reference);
  }

  /** What the ledger comes to, and whenever something is booked. */
  ledger(): Observable<LedgerTotals> {
    return this.#ledger.watch(LEDGER);
  }

  /** To be called when this instance has booked something: whoever watches need not wait. */
  booked(): void {
    this.#orders.look();
    this.#ledger.look();
  }

  /** Told once a reading, and not by each of those who watch. */
  #watched<T>(read: ReadValues<T>): WatchedValues<T> {
    return new WatchedValues(async (names) => {
      try {
        return await read(names);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#logger.warn(`The pages that watch are cut off, the books can't be read: ${reason}`);
        throw error;
      }
    }, EVERY_MS);
  }

  async #readTotals(): Promise<LedgerTotals> {
    const version = await this.books.version();
    if (this.#totals?.version !== version) {
      this.#totals = { version, totals: await this.books.totals() };
    }
    return this.#totals.totals;
  }
}
