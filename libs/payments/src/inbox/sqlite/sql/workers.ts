import type {
  HandlerDeclaration,
  HeartbeatResult,
  WorkerRegistration,
} from '../../store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { catalog, refreshCatalog, unpaused } from './catalog.js';
import type { CatalogMessage } from './catalog.js';
import { releaseNext } from './ordering.js';
import { FREED_QUEUE } from './settle.js';
import { withAttempt } from './stored-rows.js';

/** Stores a live worker, and its handlers in the catalog. */
export function register(
  connection: SqliteConnection,
  { id, leaseMs, handlers }: WorkerRegistration,
  times: Times,
): CatalogMessage {
  connection.run(
    'INSERT OR REPLACE INTO payments_inbox_worker (id, lease_ms, heartbeat_at, handlers) VALUES (?, ?, ?, ?)',
    [id, leaseMs, times.clock, JSON.stringify(handlers)],
  );
  livenessOf(connection).check(allWorkers(connection), times);
  refreshCatalog(connection, times);
  return catalog(connection);
}

/** Renews a heartbeat, removes dead workers, and frees the deliveries that they ran. */
export function heartbeat(
  connection: SqliteConnection,
  { worker }: { readonly worker: string },
  times: Times,
): HeartbeatResult & { readonly freed: number } {
  const own = connection.get<{ heartbeat_at: number; lease_ms: number }>(
    'SELECT heartbeat_at, lease_ms FROM payments_inbox_worker WHERE id = ? AND retired = 0',
    [worker],
  );
  const late = own !== undefined && times.clock - own.heartbeat_at > own.lease_ms;
  const alive =
    connection.run(
      'UPDATE payments_inbox_worker SET heartbeat_at = ? WHERE id = ? AND retired = 0',
      [times.clock, worker],
    ) === 1;
  const withoutHeartbeat = livenessOf(connection).check(allWorkers(connection), times);
  const dead = late ? [] : withoutHeartbeat;
  for (const { id } of dead) remove(connection, id);
  const retired = new Set(dead.filter((row) => row.retired === 1).map(({ id }) => id));
  const freed = freeOrphans(connection, retired, times);
  // Also stores the time at which live workers last had their handlers.
  refreshCatalog(connection, times);
  return { alive, suspects: hasSuspects(connection, worker), freed };
}

/** Removes a worker: at once if it runs no deliveries, otherwise after its grace. */
export function retire(
  connection: SqliteConnection,
  { worker, graceMs }: { readonly worker: string; readonly graceMs: number },
  times: Times,
): void {
  const running = connection.get(
    `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
     WHERE state = 'running' AND worker = ? LIMIT 1`,
    [worker],
  );
  if (running === undefined) remove(connection, worker);
  else {
    connection.run(
      'UPDATE payments_inbox_worker SET retired = 1, lease_ms = ?, heartbeat_at = max(heartbeat_at + 1, ?) WHERE id = ?',
      [Math.round(graceMs), times.clock, worker],
    );
  }
  livenessOf(connection).check(allWorkers(connection), times);
  refreshCatalog(connection, times);
}

/** Whether the worker is registered, not declared dead and not retired. */
export function isLive(connection: SqliteConnection, worker: string): boolean {
  return connection.cached(`live ${worker}`, () => {
    const sql = 'SELECT 1 FROM payments_inbox_worker WHERE id = ? AND retired = 0';
    return connection.get(sql, [worker]) !== undefined;
  });
}

function allWorkers(connection: SqliteConnection): WorkerRow[] {
  return connection.all<WorkerRow>(
    'SELECT id, lease_ms, heartbeat_at, retired FROM payments_inbox_worker',
  );
}

function handlersOf(connection: SqliteConnection, worker: string): string[] {
  const row = connection.get<{ handlers: string }>(
    'SELECT handlers FROM payments_inbox_worker WHERE id = ?',
    [worker],
  );
  return (JSON.parse(row?.handlers ?? '[]') as HandlerDeclaration[]).map(({ name }) => name);
}

function hasSuspects(connection: SqliteConnection, worker: string): boolean {
  return unpaused(connection, handlersOf(connection, worker)).some((handler) =>
    connection.get(
      `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'suspect' LIMIT 1`,
      [handler],
    ),
  );
}

function remove(connection: SqliteConnection, worker: string): void {
  connection.run('DELETE FROM payments_inbox_worker WHERE id = ?', [worker]);
}

interface OrphanRow {
  readonly event_seq: number;
  readonly handler: string;
  readonly worker: string;
  readonly attempts: number;
  readonly started_at: number;
  readonly history: string;
}

/**
 * Frees the running deliveries of all workers that have no row. Some of these workers were removed long ago: one of
 * their claims took effect late.
 */
function freeOrphans(
  connection: SqliteConnection,
  retired: ReadonlySet<string>,
  times: Times,
): number {
  const orphans = connection.all<OrphanRow>(
    `SELECT event_seq, handler, worker, attempts, started_at, history
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
     WHERE state = 'running' AND worker NOT IN (SELECT id FROM payments_inbox_worker)`,
  );
  for (const row of orphans) {
    if (retired.has(row.worker)) freeRetired(connection, row, times);
    else freeLost(connection, row, times);
    releaseNext(connection, row.event_seq, row.handler);
  }
  return orphans.length;
}

const FREED = "state = 'pending', worker = NULL, token = token + 1, due_at = ?";

function freeLost(connection: SqliteConnection, row: OrphanRow, { wall, clock }: Times): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${FREED}, queue = 'suspect', attempts = attempts - (crashes = 0),
       crashes = crashes + 1, failed_at = ?, history = ?
     WHERE event_seq = ? AND handler = ?`,
    [clock, wall, withAttempt(row, wall, 'l'), row.event_seq, row.handler],
  );
}

function freeRetired(connection: SqliteConnection, row: OrphanRow, { clock }: Times): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${FREED}, queue = ${FREED_QUEUE}, attempts = attempts - 1
     WHERE event_seq = ? AND handler = ?`,
    [clock, row.event_seq, row.handler],
  );
}

/** A row of `payments_inbox_worker`. */
export interface WorkerRow {
  readonly id: string;
  readonly lease_ms: number;
  readonly heartbeat_at: number;
  readonly retired: 0 | 1;
}

interface KnownHeartbeat {
  readonly heartbeatAt: number;
  /** From when the age of the heartbeat counts, by this process's monotonic clock; `null`: from the next check. */
  readonly since: number | null;
}

/**
 * Finds the workers that send no heartbeats. It compares no clocks of different processes, because they may differ by
 * any amount after a jump of the wall clock: a change of `heartbeat_at` is a heartbeat. A check has the time at which
 * it was requested. If the check then waits for a lock, it reads heartbeats that are later than its time. So the age of
 * a heartbeat counts from the check after the one that first read it.
 */
export class WorkerLiveness {
  #known = new Map<string, KnownHeartbeat>();

  /** Takes the rows of all workers; returns those that are dead, or whose grace has ended. */
  check<Row extends WorkerRow>(rows: readonly Row[], { monotonic }: Times): Row[] {
    const next = new Map<string, KnownHeartbeat>();
    const dead: Row[] = [];
    for (const row of rows) {
      const known = this.#known.get(row.id);
      const since = known?.heartbeatAt === row.heartbeat_at ? (known.since ?? monotonic) : null;
      next.set(row.id, { heartbeatAt: row.heartbeat_at, since });
      const ageMs = since === null ? 0 : monotonic - since;
      // A grace of 0 ends at once.
      if (row.retired === 1 ? ageMs >= row.lease_ms : ageMs > row.lease_ms) dead.push(row);
    }
    this.#known = next;
    return dead;
  }
}

/** Each connection has a file of its own workers. */
const livenessByConnection = new WeakMap<SqliteConnection, WorkerLiveness>();

function livenessOf(connection: SqliteConnection): WorkerLiveness {
  const liveness = livenessByConnection.get(connection) ?? new WorkerLiveness();
  livenessByConnection.set(connection, liveness);
  return liveness;
}
