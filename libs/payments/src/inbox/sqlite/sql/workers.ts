import type {
  HandlerDeclaration,
  HeartbeatResult,
  WorkerRegistration,
} from '../../store/inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import type { WorkerRow } from '../thread/worker-liveness.js';
import { catalog, refreshCatalog, unpaused } from './catalog.js';
import type { CatalogMessage } from './catalog.js';
import { releaseNext } from './ordering.js';
import { QUEUE_OF_FREED } from './settle.js';
import { withAttempt } from './stored-rows.js';

/** Adds a live worker, and its handlers to the catalog. */
export function register(
  connection: SqliteConnection,
  { id, leaseMs, handlers }: WorkerRegistration,
  times: Times,
): CatalogMessage {
  connection.run(
    'INSERT OR REPLACE INTO payments_inbox_worker (id, lease_ms, beat_at, handlers) VALUES (?, ?, ?, ?)',
    [id, leaseMs, times.clock, JSON.stringify(handlers)],
  );
  connection.liveness.look(allWorkers(connection), times);
  refreshCatalog(connection, times);
  return catalog(connection);
}

/** Renews a heartbeat, removes the workers that send none, and frees what they ran. */
export function heartbeat(
  connection: SqliteConnection,
  { worker }: { readonly worker: string },
  times: Times,
): HeartbeatResult & { readonly freed: number } {
  const own = connection.get<{ beat_at: number; lease_ms: number }>(
    'SELECT beat_at, lease_ms FROM payments_inbox_worker WHERE id = ? AND retired = 0',
    [worker],
  );
  const late = own !== undefined && times.clock - own.beat_at > own.lease_ms;
  const alive =
    connection.run('UPDATE payments_inbox_worker SET beat_at = ? WHERE id = ? AND retired = 0', [
      times.clock,
      worker,
    ]) === 1;
  const silent = connection.liveness.look(allWorkers(connection), times);
  const dead = late ? [] : silent;
  for (const { id } of dead) remove(connection, id);
  const retired = new Set(dead.filter((row) => row.retired === 1).map(({ id }) => id));
  const freed = freeOrphans(connection, retired, times);
  // It also records when the handlers of live workers were seen.
  refreshCatalog(connection, times);
  return { alive, suspects: hasSuspects(connection, worker), freed };
}

/** Ends a worker: at once if it holds nothing, or after its grace. */
export function retire(
  connection: SqliteConnection,
  { worker, graceMs }: { readonly worker: string; readonly graceMs: number },
  times: Times,
): void {
  const holds = connection.get(
    `SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
     WHERE state = 'running' AND worker = ? LIMIT 1`,
    [worker],
  );
  if (holds === undefined) remove(connection, worker);
  else {
    connection.run(
      'UPDATE payments_inbox_worker SET retired = 1, lease_ms = ?, beat_at = max(beat_at + 1, ?) WHERE id = ?',
      [Math.round(graceMs), times.clock, worker],
    );
  }
  connection.liveness.look(allWorkers(connection), times);
  refreshCatalog(connection, times);
}

/** Whether the worker is registered, not declared dead and not retired. */
export function isLive(connection: SqliteConnection, worker: string): boolean {
  return connection.fact(`live ${worker}`, () => {
    const sql = 'SELECT 1 FROM payments_inbox_worker WHERE id = ? AND retired = 0';
    return connection.get(sql, [worker]) !== undefined;
  });
}

function allWorkers(connection: SqliteConnection): WorkerRow[] {
  return connection.all<WorkerRow>(
    'SELECT id, lease_ms, beat_at, retired FROM payments_inbox_worker',
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
  readonly alone: 0 | 1;
  readonly started_at: number;
  readonly history: string;
}

/** Frees running deliveries of workers that have no row, those included that died long ago and claimed late. */
function freeOrphans(
  connection: SqliteConnection,
  retired: ReadonlySet<string>,
  times: Times,
): number {
  const orphans = connection.all<OrphanRow>(
    `SELECT event_seq, handler, worker, attempts, alone, started_at, history
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

const FREED = "state = 'pending', worker = NULL, alone = 0, token = token + 1, due_at = ?";

function freeLost(connection: SqliteConnection, row: OrphanRow, { wall, clock }: Times): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${FREED}, queue = 'suspect', attempts = attempts - iif(alone = 1, 0, 1),
       crashes = crashes + 1,
       failed_at = ?, history = ?
     WHERE event_seq = ? AND handler = ?`,
    [clock, wall, withAttempt(row, wall, 'l'), row.event_seq, row.handler],
  );
}

function freeRetired(connection: SqliteConnection, row: OrphanRow, { clock }: Times): void {
  connection.run(
    `UPDATE payments_inbox_delivery SET ${FREED}, queue = ${QUEUE_OF_FREED}, attempts = attempts - 1
     WHERE event_seq = ? AND handler = ?`,
    [clock, row.event_seq, row.handler],
  );
}
