import type { ActivityCounts, ActivityMinute } from '../../store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';

const MINUTE_MS = 60_000;

/** How many minutes the table keeps. */
const KEPT_MINUTES = 1440;

/** How long after its end a minute is closed, in milliseconds. */
const CLOSING_MS = 10_000;

/** How many of the last written minutes are written again, because transactions may have committed late. */
const REWRITTEN_MINUTES = 2;

/** The activity of one handler in one minute, or of all handlers together (`''`). */
export interface ActivityRow extends ActivityCounts {
  readonly minute: number;
  readonly handler: string;
}

/** How many minutes one call of {@link summarize} writes at most. A minute without activity costs almost nothing. */
const SLICE_MINUTES = 60;

/**
 * Writes the closed minutes from `from` on, at most {@link SLICE_MINUTES}; without `from`, from the first minute that
 * is not written yet. It returns after a minute with activity, so that a receive can run before the next minute.
 * Returns `from` of the next call; `null` if all minutes are written.
 */
export function summarize(
  connection: SqliteConnection,
  { from }: { readonly from: number | null },
  { wall }: Times,
): number | null {
  const end = closedUntil(wall);
  const first = Math.max(from ?? firstUnwritten(connection, end), end - KEPT_MINUTES * MINUTE_MS);
  const sliceEnd = Math.min(end, first + SLICE_MINUTES * MINUTE_MS);
  for (let minute = first; minute < sliceEnd; minute += MINUTE_MS) {
    if (write(connection, minute) > 0) return minute + MINUTE_MS;
  }
  return sliceEnd < end ? sliceEnd : null;
}

/** The last `minutes` written minutes, oldest first, each with a row for all handlers together. */
export function activity(
  connection: SqliteConnection,
  { minutes }: { readonly minutes: number },
  { wall }: Times,
): ActivityRow[] {
  const last = lastWritten(connection, closedUntil(wall));
  if (last === null) return [];
  return connection.all<ActivityRow>(
    `SELECT minute, handler, received, done, failed, dead, p50_ms AS p50Ms, p95_ms AS p95Ms
     FROM payments_inbox_activity WHERE minute > ? AND minute <= ? ORDER BY minute, handler`,
    [last - minutes * MINUTE_MS, last],
  );
}

/** Deletes the minutes that {@link activity} no longer returns. */
export function pruneActivity(connection: SqliteConnection, { wall }: Times): void {
  connection.run('DELETE FROM payments_inbox_activity WHERE minute < ?', [
    closedUntil(wall) - KEPT_MINUTES * MINUTE_MS,
  ]);
}

function closedUntil(wall: number): number {
  return Math.floor((wall - CLOSING_MS) / MINUTE_MS) * MINUTE_MS;
}

function firstUnwritten(connection: SqliteConnection, end: number): number {
  const last = lastWritten(connection, end);
  return last === null ? -Infinity : last - (REWRITTEN_MINUTES - 1) * MINUTE_MS;
}

/**
 * The last written minute before `end`. After the wall clock was set back, there are written minutes in the future;
 * they are written again when they are closed.
 */
function lastWritten(connection: SqliteConnection, end: number): number | null {
  return connection.get<{ minute: number | null }>(
    'SELECT max(minute) AS minute FROM payments_inbox_activity WHERE minute < ?',
    [end],
  )!.minute;
}

interface Tally {
  received: number;
  failed: number;
  dead: number;
  tookMs: number[];
}

/** Writes one minute; returns how many handlers had activity in it. */
function write(connection: SqliteConnection, minute: number): number {
  const handlers = new Map<string, Tally>();
  const tallyOf = (handler: string): Tally => {
    const tally = handlers.get(handler) ?? { received: 0, failed: 0, dead: 0, tookMs: [] };
    handlers.set(handler, tally);
    return tally;
  };
  for (const { handler, count } of received(connection, minute)) tallyOf(handler).received = count;
  for (const { handler, count } of failed(connection, minute)) tallyOf(handler).failed = count;
  for (const { handler, count } of dead(connection, minute)) tallyOf(handler).dead = count;
  for (const { handler, tookMs } of done(connection, minute)) tallyOf(handler).tookMs.push(tookMs);
  const total: Tally = { received: newEvents(connection, minute), failed: 0, dead: 0, tookMs: [] };
  for (const { failed, dead, tookMs } of handlers.values()) {
    total.failed += failed;
    total.dead += dead;
    total.tookMs = total.tookMs.concat(tookMs);
  }
  connection.run('DELETE FROM payments_inbox_activity WHERE minute = ?', [minute]);
  for (const [handler, tally] of handlers) insert(connection, minute, handler, tally);
  insert(connection, minute, '', total);
  return handlers.size + total.received;
}

interface CountRow {
  readonly handler: string;
  readonly count: number;
}

function newEvents(connection: SqliteConnection, minute: number): number {
  return connection.get<{ count: number }>(
    `SELECT count(*) AS count FROM payments_inbox_event INDEXED BY payments_inbox_event_received
     WHERE received_at >= ? AND received_at < ?`,
    [minute, minute + MINUTE_MS],
  )!.count;
}

function received(connection: SqliteConnection, minute: number): CountRow[] {
  return connection.all<CountRow>(
    `SELECT d.handler, count(*) AS count
     FROM payments_inbox_event e INDEXED BY payments_inbox_event_received
       CROSS JOIN payments_inbox_delivery d ON d.event_seq = e.seq
     WHERE e.received_at >= ? AND e.received_at < ? GROUP BY d.handler`,
    [minute, minute + MINUTE_MS],
  );
}

function done(
  connection: SqliteConnection,
  minute: number,
): { readonly handler: string; readonly tookMs: number }[] {
  return connection.all(
    `SELECT handler, max(0, finished_at - received_at) AS tookMs
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_done
     WHERE state = 'done' AND finished_at >= ? AND finished_at < ?`,
    [minute, minute + MINUTE_MS],
  );
}

/** Counts failed attempts in the histories, because a delivery may have failed in that minute and again later. */
function failed(connection: SqliteConnection, minute: number): CountRow[] {
  return connection.all<CountRow>(
    `SELECT handler, count(*) AS count
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_failed, json_each(history) AS attempt
     WHERE failed_at IS NOT NULL AND failed_at >= ?1 AND json_extract(attempt.value, '$[3]') IN ('f', 'l')
       AND json_extract(attempt.value, '$[1]') + json_extract(attempt.value, '$[2]') BETWEEN ?1 AND ?2
     GROUP BY handler`,
    [minute, minute + MINUTE_MS - 1],
  );
}

function dead(connection: SqliteConnection, minute: number): CountRow[] {
  return connection.all<CountRow>(
    `SELECT handler, count(*) AS count
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_failed
     WHERE failed_at IS NOT NULL AND failed_at >= ? AND failed_at < ? AND state = 'dead'
     GROUP BY handler`,
    [minute, minute + MINUTE_MS],
  );
}

function insert(
  connection: SqliteConnection,
  minute: number,
  handler: string,
  { received, failed, dead, tookMs }: Tally,
): void {
  const sorted = Float64Array.from(tookMs).toSorted();
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  connection.run('INSERT INTO payments_inbox_activity VALUES (?, ?, ?, ?, ?, ?, ?, ?)', [
    minute,
    handler,
    received,
    sorted.length,
    failed,
    dead,
    nearestRank(0.5),
    nearestRank(0.95),
  ]);
}

/** Groups the rows that the SQLite thread returns by minute. */
export function toActivity(rows: readonly ActivityRow[]): ActivityMinute[] {
  const minutes = new Map<number, ActivityRow[]>();
  for (const row of rows) minutes.set(row.minute, [...(minutes.get(row.minute) ?? []), row]);
  return Array.from(minutes, ([minute, found]) => ({
    startsAt: new Date(minute),
    // Every minute has a row for all handlers together, whose name `''` sorts first.
    total: toCounts(found[0]!),
    handlers: Object.fromEntries(found.slice(1).map((row) => [row.handler, toCounts(row)])),
  }));
}

function toCounts({ received, done, failed, dead, p50Ms, p95Ms }: ActivityRow): ActivityCounts {
  return { received, done, failed, dead, p50Ms, p95Ms };
}
