import type { HandlerDeclaration, HeartbeatResult } from '../../../inbox/store/inbox-store.js';
import { endPauses, REMOVE_WORKER } from '../../sql/workers.js';
import type { SqliteConnection } from '../thread/connection.js';
import type { SqliteSql } from '../thread/connection.js';
import { FREED_QUEUE, releaseNext } from './ordering.js';
import { withAttempt } from './settle.js';
import type { RunningRow } from './settle.js';

export async function heartbeat(sql: SqliteSql, workerId: string): Promise<HeartbeatResult> {
  const { connection, times } = sql;
  if (await endPauses(sql)) sql.wakes = true;
  const own = connection.get<{ heartbeat_at: number; lease_ms: number; handlers: string }>(
    'SELECT heartbeat_at, lease_ms, handlers FROM payments_inbox_worker WHERE id = ? AND retired = 0',
    [workerId],
  );
  const late = own !== undefined && times.clock - own.heartbeat_at > own.lease_ms;
  connection.run('UPDATE payments_inbox_worker SET heartbeat_at = ? WHERE id = ? AND retired = 0', [
    times.clock,
    workerId,
  ]);
  const withoutHeartbeat = deadWorkers(sql);
  const dead = late ? [] : withoutHeartbeat;
  for (const { id } of dead) await sql.changeCatalog(REMOVE_WORKER, [id]);
  freeOrphans(sql, new Set(dead.filter((row) => row.retired === 1).map(({ id }) => id)));
  const handlers = JSON.parse(own?.handlers ?? '[]') as HandlerDeclaration[];
  const names = handlers.map(({ name }) => name);
  return { alive: own !== undefined, suspects: hasSuspects(connection, names) };
}

/**
 * Reads and records the heartbeats of all workers. The age of a heartbeat counts from the time when it was first read.
 * Call this function after a change of the workers. Returns `changed`, the result of that change.
 */
export function noteHeartbeats<T>(sql: SqliteSql, changed: T): T {
  deadWorkers(sql);
  return changed;
}

/** Whether the worker is registered, not declared dead and not retired. */
export function isLive(connection: SqliteConnection, workerId: string): boolean {
  return connection.cached(`live ${workerId}`, () => {
    const sql = 'SELECT 1 FROM payments_inbox_worker WHERE id = ? AND retired = 0';
    return connection.get(sql, [workerId]) !== undefined;
  });
}

export function catalogVersion(connection: SqliteConnection): number {
  return connection.cached('catalog', () => {
    const sql = 'SELECT catalog_version AS version FROM payments_inbox_meta';
    return connection.get<{ version: number }>(sql)!.version;
  });
}

/** Returns the handlers without paused handlers and repeated names. */
export function unpaused(connection: SqliteConnection, handlers: readonly string[]): string[] {
  const paused = connection.cached('paused', () =>
    connection
      .all<{ handler: string }>('SELECT handler FROM payments_inbox_pause')
      .map(({ handler }) => handler),
  );
  if (paused.includes('*')) return [];
  return [...new Set(handlers)].filter((handler) => !paused.includes(handler));
}

const livenesses = new WeakMap<SqliteConnection, WorkerLiveness>();

/** Call this function in a transaction that writes, so that no heartbeat is stored meanwhile. */
function deadWorkers({ connection, times }: SqliteSql): WorkerRow[] {
  const rows = connection.all<WorkerRow>(
    'SELECT id, lease_ms, heartbeat_at, retired FROM payments_inbox_worker',
  );
  const liveness = livenesses.get(connection) ?? new WorkerLiveness();
  livenesses.set(connection, liveness);
  // The current time, not the time of the request, because the request may have waited for a lock.
  return liveness.check(rows, connection.machine() + times.processOffset);
}

function hasSuspects(connection: SqliteConnection, handlers: readonly string[]): boolean {
  return unpaused(connection, handlers).some((handler) =>
    connection.get(
      `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'suspect' LIMIT 1`,
      [handler],
    ),
  );
}

interface OrphanRow extends RunningRow {
  readonly event: number;
  readonly handler: string;
  readonly worker: string;
}

/**
 * Frees the running deliveries of all workers that have no row. A worker that was removed long ago can have such a
 * delivery, if one of its claims took effect late.
 *
 * @param retired the workers whose grace period has ended. The deliveries of these workers do not become suspects.
 */
function freeOrphans(sql: SqliteSql, retired: ReadonlySet<string>): void {
  const { connection, times } = sql;
  const { wall, clock } = times;
  const orphans = connection.all<OrphanRow>(
    `SELECT event, handler, worker, attempts, started_at, history
     FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
     WHERE state = 'running' AND worker NOT IN (SELECT id FROM payments_inbox_worker)`,
  );
  for (const row of orphans) {
    const [set, values] = retired.has(row.worker)
      ? [`queue = ${FREED_QUEUE}, attempts = attempts - 1`, []]
      : [
          `queue = 'suspect', attempts = attempts - (crashes = 0), crashes = crashes + 1, failed_at = ?, history = ?`,
          [wall, withAttempt(row, wall, 'l')],
        ];
    connection.run(
      `UPDATE payments_inbox_delivery SET state = 'pending', worker = NULL, token = token + 1, due_at = ?, ${set}
       WHERE event = ? AND handler = ?`,
      [clock, ...values, row.event, row.handler],
    );
    releaseNext(connection, row.event, row.handler);
  }
  sql.wakes ||= orphans.length > 0;
}

export interface WorkerRow {
  readonly id: string;
  readonly lease_ms: number;
  readonly heartbeat_at: number;
  readonly retired: 0 | 1;
}

/**
 * Finds the workers of a file that send no heartbeats. The class does not compare clocks of different processes,
 * because such clocks may differ by any amount after a jump of the wall clock. A change of `heartbeat_at` is a
 * heartbeat. The age of a heartbeat counts from the check that first read the change, by the monotonic clock of this
 * process.
 */
export class WorkerLiveness {
  #known = new Map<string, { readonly heartbeatAt: number; readonly since: number }>();

  /**
   * Returns the workers that are dead, or whose grace period has ended. `rows` must contain all workers that are stored
   * at the time `now`.
   */
  check(rows: readonly WorkerRow[], now: number): WorkerRow[] {
    const known = this.#known;
    this.#known = new Map();
    return rows.filter(({ id, heartbeat_at: heartbeatAt, retired, lease_ms }) => {
      const last = known.get(id);
      const since = last?.heartbeatAt === heartbeatAt ? last.since : now;
      this.#known.set(id, { heartbeatAt, since });
      const ageMs = now - since;
      // A grace period of 0 ends immediately.
      return retired === 1 ? ageMs >= lease_ms : ageMs > lease_ms;
    });
  }
}
