import type { HandlerDeclaration, HeartbeatResult } from '../../../inbox/store/inbox-store.js';
import { REMOVE_WORKER } from '../../sql/workers.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import type { SqliteSql } from '../thread/sqlite-sql.js';
import { unpaused } from './catalog.js';
import { releaseNext } from './ordering.js';
import { FREED_QUEUE } from './settle.js';
import { withAttempt } from './attempt-history.js';

/** Renews a heartbeat, removes dead workers, and frees the deliveries that they ran. */
export async function heartbeat(sql: SqliteSql, workerId: string): Promise<HeartbeatResult> {
  const { connection, times } = sql;
  const own = connection.get<{ heartbeat_at: number; lease_ms: number }>(
    'SELECT heartbeat_at, lease_ms FROM payments_inbox_worker WHERE id = ? AND retired = 0',
    [workerId],
  );
  const late = own !== undefined && times.clock - own.heartbeat_at > own.lease_ms;
  const alive =
    connection.run(
      'UPDATE payments_inbox_worker SET heartbeat_at = ? WHERE id = ? AND retired = 0',
      [times.clock, workerId],
    ) === 1;
  const withoutHeartbeat = deadWorkers(connection, times);
  const dead = late ? [] : withoutHeartbeat;
  for (const { id } of dead) await sql.changeCatalog(REMOVE_WORKER, [id]);
  const retired = new Set(dead.filter((row) => row.retired === 1).map(({ id }) => id));
  const freed = freeOrphans(connection, retired, times);
  sql.wakes ||= freed > 0;
  return { alive, suspects: hasSuspects(connection, workerId) };
}

/**
 * Notes the heartbeats of all workers, because the age of a heartbeat counts from the first time that it was read. Call it with
 * the result of a change of the workers, whose statements have run.
 */
export function noteHeartbeats<T>({ connection, times }: SqliteSql, changed: T): T {
  deadWorkers(connection, times);
  return changed;
}

/** Whether the worker is registered, not declared dead and not retired. */
export function isLive(connection: SqliteConnection, workerId: string): boolean {
  return connection.cached(`live ${workerId}`, () => {
    const sql = 'SELECT 1 FROM payments_inbox_worker WHERE id = ? AND retired = 0';
    return connection.get(sql, [workerId]) !== undefined;
  });
}

/** The workers that send no heartbeats. Call it in a transaction that writes, so that no heartbeat is stored meanwhile. */
function deadWorkers(connection: SqliteConnection, times: Times): WorkerRow[] {
  const rows = connection.all<WorkerRow>(
    'SELECT id, lease_ms, heartbeat_at, retired FROM payments_inbox_worker',
  );
  // The time now, not that of the request, which may have waited for a lock.
  return livenessOf(connection).check(rows, connection.machine() + times.processOffset);
}

function handlersOf(connection: SqliteConnection, workerId: string): string[] {
  const row = connection.get<{ handlers: string }>(
    'SELECT handlers FROM payments_inbox_worker WHERE id = ?',
    [workerId],
  );
  return (JSON.parse(row?.handlers ?? '[]') as HandlerDeclaration[]).map(({ name }) => name);
}

function hasSuspects(connection: SqliteConnection, workerId: string): boolean {
  return unpaused(connection, handlersOf(connection, workerId)).some((handler) =>
    connection.get(
      `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'suspect' LIMIT 1`,
      [handler],
    ),
  );
}

interface OrphanRow {
  readonly event: number;
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
    `SELECT event, handler, worker, attempts, started_at, history
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
     WHERE state = 'running' AND worker NOT IN (SELECT id FROM payments_inbox_worker)`,
  );
  for (const row of orphans) {
    if (retired.has(row.worker)) freeRetired(connection, row, times);
    else freeLost(connection, row, times);
    releaseNext(connection, row.event, row.handler);
  }
  return orphans.length;
}

const FREED = "state = 'pending', worker = NULL, token = token + 1, due_at = ?";

function freeLost(connection: SqliteConnection, row: OrphanRow, { wall, clock }: Times): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${FREED}, queue = 'suspect', attempts = attempts - (crashes = 0),
       crashes = crashes + 1, failed_at = ?, history = ?
     WHERE event = ? AND handler = ?`,
    [clock, wall, withAttempt(row, wall, 'l'), row.event, row.handler],
  );
}

function freeRetired(connection: SqliteConnection, row: OrphanRow, { clock }: Times): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${FREED}, queue = ${FREED_QUEUE}, attempts = attempts - 1
     WHERE event = ? AND handler = ?`,
    [clock, row.event, row.handler],
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
  /** When a check first read the heartbeat, by this process's monotonic clock. */
  readonly since: number;
}

/**
 * Finds the workers that send no heartbeats. It compares no clocks of different processes, because they may differ by
 * any amount after a jump of the wall clock: a change of `heartbeat_at` is a heartbeat, and its age counts from the check
 * that first read it.
 */
export class WorkerLiveness {
  #known = new Map<string, KnownHeartbeat>();

  /** Takes the rows of all workers that are stored `now`; returns those that are dead, or whose grace has ended. */
  check(rows: readonly WorkerRow[], now: number): WorkerRow[] {
    const next = new Map<string, KnownHeartbeat>();
    const dead: WorkerRow[] = [];
    for (const row of rows) {
      const known = this.#known.get(row.id);
      const since = known?.heartbeatAt === row.heartbeat_at ? known.since : now;
      next.set(row.id, { heartbeatAt: row.heartbeat_at, since });
      const ageMs = now - since;
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
