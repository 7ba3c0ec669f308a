import { Injectable } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { ShopDatabase } from '../database/shop-database.js';
import { PolledValues } from '../live/polled-values.js';
import type { LedgerTotals } from './ledger-entry.js';

/** Key of the only watched value. */
const LEDGER = 'ledger';

/** Reports the changes of the ledger, including changes by other instances of the shop. */
@Injectable()
export class LiveLedgerService {
  readonly #totals: PolledValues<LedgerTotals>;
  #latest: { readonly version: string; readonly totals: LedgerTotals } | undefined;

  constructor(private readonly database: ShopDatabase) {
    this.#totals = new PolledValues('the ledger', async () => {
      return new Map([[LEDGER, await this.#readTotals()]]);
    });
  }

  /** Emits the current totals, and the new totals after each change. */
  watchTotals(): Observable<LedgerTotals> {
    return this.#totals.watch(LEDGER);
  }

  /** Reads the totals now, if a page watches them. Call this method when this instance has recorded a payment. */
  refresh(): void {
    this.#totals.refresh();
  }

  async #readTotals(): Promise<LedgerTotals> {
    const version = await this.database.ledgerVersion();
    if (this.#latest?.version !== version) {
      this.#latest = { version, totals: await this.database.ledgerTotals() };
    }
    return this.#latest.totals;
  }
}
