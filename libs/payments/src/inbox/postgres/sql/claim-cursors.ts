import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Prepared } from '../connection/database-connection.js';
import { toStored } from './stored-text.js';

/** How long it may take to find the first due delivery of a handler. It takes less than 1 ms if no entries are dead. */
const SLOW_MS = 10;
/** How much earlier than its cursor a claim starts: transactions commit later than the times that they write. */
const OVERLAP_MS = 1000;
/** Between two looks at what is due before the cursors. */
const LOOK_BACK_MS = 3000;
/** A look back may take at most one part in so many of the time. */
const LOOK_BACK_SHARE = 20;

/**
 * Where claims start to read. While a transaction is open elsewhere, the index entries of claimed deliveries cannot be
 * removed, and a claim from the first entry on walks over all of them. So, once that is slow, claims of a handler start
 * from a cursor: what its previous claim found first. What became due before a cursor, because its transaction took
 * long, is found by a look back every few seconds, which no claim waits for. It is made less often the longer it takes.
 */
export class ClaimCursors {
  /** Milliseconds since the epoch, by the clock of the database. */
  readonly #cursors = new Map<string, number>();
  readonly #lookBack: Prepared;
  #slow = false;
  #looking = false;
  #nextLookAt = -Infinity;
  #found = 0;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
    private readonly runtime: PaymentsRuntime,
    /** Called if deliveries were found before a cursor. */
    private readonly onFound: () => void,
  ) {
    this.#lookBack = prepared(
      `SELECT n.place, ${schema}.first_due_ms(n.handler, NULL, n.until) AS due_ms
         FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS n (handler, until, place)`,
    );
  }

  /** Where to start, for each handler, in milliseconds since the epoch; `null`: from the first. */
  startsOf(handlers: readonly string[]): (number | null)[] {
    if (!this.#slow) return handlers.map(() => null);
    if (this.runtime.monotonic() >= this.#nextLookAt) void this.#look();
    return handlers.map((handler) => {
      const cursor = this.#cursors.get(handler);
      return cursor === undefined ? null : cursor - OVERLAP_MS;
    });
  }

  /** How many looks back have found something. */
  get found(): number {
    return this.#found;
  }

  /**
   * What a claim found: the first due delivery, or that there is none up to now, and how long it looked. `since` is what
   * {@link found} was when it started: a look back that found something meanwhile has moved the cursor back.
   */
  looked(handler: string, cursorMs: number, tookMs: number, since: number): void {
    if (since === this.#found) this.#cursors.set(handler, cursorMs);
    // One look may be slow for another reason, so a second has to confirm it.
    if (tookMs >= SLOW_MS && !this.#slow) void this.#look();
  }

  /** Never rejects. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    const known = [...this.#cursors];
    const begun = this.runtime.monotonic();
    let looked = false;
    let found = false;
    try {
      const rows = await this.source.query(this.#lookBack, [
        known.map(([handler]) => toStored(handler)),
        known.map(([, cursor]) => cursor - OVERLAP_MS),
      ]);
      const due = rows.filter(({ due_ms }) => due_ms != null);
      for (const { place, due_ms } of due) {
        this.#cursors.set(known[Number(place) - 1]![0], Number(due_ms));
      }
      looked = true;
      found = due.length > 0;
      if (found) this.#found += 1;
    } catch {
      // The next one looks again.
    }
    const tookMs = this.runtime.monotonic() - begun;
    if (looked) this.#slow = tookMs >= SLOW_MS;
    this.#nextLookAt = this.runtime.monotonic() + Math.max(LOOK_BACK_MS, tookMs * LOOK_BACK_SHARE);
    this.#looking = false;
    if (found) this.onFound();
  }
}
