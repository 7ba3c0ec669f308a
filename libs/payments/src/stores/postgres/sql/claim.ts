import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type {
  ClaimedDelivery,
  ClaimRequest,
  EventSource,
  SuspectRequest,
} from '../../../inbox/store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { PreparedStatement, ResultRow } from '../connection/database-connection.js';
import { NOW_MS } from './schema.js';
import { fromStored, toStored } from '../../sql/stored-text.js';
import { toDate } from './stored-rows.js';

/** A claim locks the ordering keys that it checks, and the database's table of locks is finite. */
const MAX_CLAIM = 500;
/** From this time on, in milliseconds, a search is slow. Without dead index entries it takes less than 1 ms. */
const SLOW_MS = 10;
/** How much earlier than its cursor a claim starts: transactions commit later than the times that they write. */
const OVERLAP_MS = 1000;
/** The shortest time between two searches before the cursors. */
const LOOK_BACK_MS = 3000;
/**
 * After a search before the cursors, the next one waits this many times as long as the search took, but at most the time
 * below: one search may be slow because the machine was busy, and a due delivery before a cursor waits for the next search.
 */
const LOOK_BACK_PAUSE_FACTOR = 20;
const MAX_LOOK_BACK_MS = 5000;

/** The columns that the functions `claim` and `claim_suspect` return for a delivery, as {@link toClaimed} reads them. */
const CLAIMED_COLUMNS = `o_seq, o_company, o_id, o_handler, o_token, o_attempt, o_crashes, o_source,
  o_type, o_traceparent,
  o_received_at, ${NOW_MS} - o_received_at AS age_ms,
  encode(o_raw, 'base64') AS raw`;

function toClaimed(row: ResultRow): ClaimedDelivery {
  return {
    seq: Number(row['o_seq']),
    company: fromStored(row['o_company']!),
    id: fromStored(row['o_id']!),
    handler: fromStored(row['o_handler']!),
    token: Number(row['o_token']),
    attempt: Number(row['o_attempt']),
    crashes: Number(row['o_crashes']),
    receivedAt: toDate(row['o_received_at']!),
    ageMs: Math.max(0, Number(row['age_ms'])),
    // Only events whose deliveries are all finished are pruned, so an event with a claimed delivery has its body.
    raw: Buffer.from(row['raw']!, 'base64'),
    source: row['o_source'] as EventSource,
    traced: { traceparent: row['o_traceparent'] ?? null, eventType: fromStored(row['o_type']!) },
  };
}

/** Leases due deliveries, and returns when the next one is due. */
export class ClaimStatements {
  readonly #claim: PreparedStatement;
  readonly #nextDue: PreparedStatement;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
    private readonly cursors: ClaimCursors,
  ) {
    this.#claim = prepared(
      `SELECT ${CLAIMED_COLUMNS}, o_cursor AS cursor_ms, o_search_ms
         FROM ${schema}.claim($1::uuid, $2::text[], $3::integer[], $4::bigint[])`,
    );
    this.#nextDue = prepared(
      `SELECT min(${schema}.first_due_ms(n.handler, n.since, NULL)) - ${NOW_MS} AS ms
         FROM unnest($1::text[], $2::bigint[]) AS n (handler, since)`,
    );
  }

  /** Leases the earliest due deliveries to a worker, per handler at most its limit. */
  async claim({ worker, wanted }: ClaimRequest): Promise<ClaimedDelivery[]> {
    if (wanted.length === 0) return [];
    const handlers = wanted.map(({ handler }) => handler);
    const version = this.cursors.version;
    const rows = await this.source.query(this.#claim, [
      worker,
      handlers.map(toStored),
      wanted.map(({ limit }) => Math.min(limit, MAX_CLAIM)),
      this.cursors.startsOf(handlers),
    ]);
    for (const { o_handler, cursor_ms, o_search_ms } of rows) {
      if (cursor_ms == null) continue;
      this.cursors.advance(fromStored(o_handler!), Number(cursor_ms), Number(o_search_ms), version);
    }
    return rows.filter((row) => row['o_seq'] !== null).map(toClaimed);
  }

  /** Milliseconds until the first delivery of the handlers is due; `null` if there is none. */
  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const values = [handlers.map(toStored), this.cursors.startsOf(handlers)];
    const [row] = await this.source.query(this.#nextDue, values);
    const ms = row!['ms'];
    return ms == null ? null : Number(ms);
  }
}

/** Leases the earliest due suspect. */
export async function claimSuspect(
  source: ConnectionSource,
  schema: string,
  { worker, handlers }: SuspectRequest,
): Promise<ClaimedDelivery | null> {
  const [row] = await source.query(
    `SELECT ${CLAIMED_COLUMNS} FROM ${schema}.claim_suspect($1::uuid, $2::text[])`,
    [worker, handlers.map(toStored)],
  );
  return row === undefined ? null : toClaimed(row);
}

/**
 * The due time from which the claims of each handler search. A transaction that is open elsewhere keeps the index entries
 * of claimed deliveries from being removed, and a claim that starts at the first entry reads all of them. So, once that is
 * slow, the claims of a handler start at a cursor: the due time of the first delivery that its previous claim found. A
 * delivery may become due before a cursor, if its transaction took long. Every few seconds a search before the cursors,
 * which no claim waits for, finds such deliveries and moves the cursors back. The slower it is, the less often it runs.
 */
export class ClaimCursors {
  /** By handler: milliseconds since the epoch, by the store clock. */
  readonly #cursors = new Map<string, number>();
  readonly #lookBackStatement: PreparedStatement;
  #slow = false;
  #lookingBack = false;
  #nextLookBackAt = -Infinity;
  #version = 0;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
    private readonly runtime: PaymentsRuntime,
    /** Called after due deliveries were found before a cursor. */
    private readonly onFound: () => void,
  ) {
    this.#lookBackStatement = prepared(
      `SELECT n.position, ${schema}.first_due_ms(n.handler, NULL, n.until) AS due_ms
         FROM unnest($1::text[], $2::bigint[]) WITH ORDINALITY AS n (handler, until, position)`,
    );
  }

  /** The due time to start at, for each handler, in milliseconds since the epoch; `null`: the first of all. */
  startsOf(handlers: readonly string[]): (number | null)[] {
    if (!this.#slow) return handlers.map(() => null);
    if (this.runtime.monotonic() >= this.#nextLookBackAt) void this.#lookBack();
    return handlers.map((handler) => {
      const cursor = this.#cursors.get(handler);
      return cursor === undefined ? null : cursor - OVERLAP_MS;
    });
  }

  /** Increases each time that cursors were moved back. */
  get version(): number {
    return this.#version;
  }

  /**
   * Moves the cursor of a handler after a claim.
   *
   * @param cursorMs the due time of the first delivery that the claim found, or the time of the claim if it found none
   * @param searchMs how long the search took
   * @param version the {@link version} before the claim; if cursors were moved back since then, the cursor does not change
   */
  advance(handler: string, cursorMs: number, searchMs: number, version: number): void {
    if (version === this.#version) this.#cursors.set(handler, cursorMs);
    // One search may be slow for another reason, so the search before the cursors has to confirm it.
    if (searchMs >= SLOW_MS && !this.#slow) void this.#lookBack();
  }

  /** Searches before the cursors. Never rejects. */
  async #lookBack(): Promise<void> {
    if (this.#lookingBack) return;
    this.#lookingBack = true;
    const cursors = [...this.#cursors];
    const startedAt = this.runtime.monotonic();
    let succeeded = false;
    let found = false;
    try {
      const rows = await this.source.query(this.#lookBackStatement, [
        cursors.map(([handler]) => toStored(handler)),
        cursors.map(([, cursor]) => cursor - OVERLAP_MS),
      ]);
      const due = rows.filter(({ due_ms }) => due_ms != null);
      for (const { position, due_ms } of due) {
        this.#cursors.set(cursors[Number(position) - 1]![0], Number(due_ms));
      }
      succeeded = true;
      found = due.length > 0;
      if (found) this.#version += 1;
    } catch {
      // The source has logged it, and the next search runs in a few seconds.
    }
    const tookMs = this.runtime.monotonic() - startedAt;
    if (succeeded) this.#slow = tookMs >= SLOW_MS;
    const pauseMs = Math.min(tookMs * LOOK_BACK_PAUSE_FACTOR, MAX_LOOK_BACK_MS);
    this.#nextLookBackAt = this.runtime.monotonic() + Math.max(pauseMs, LOOK_BACK_MS);
    this.#lookingBack = false;
    if (found) this.onFound();
  }
}
