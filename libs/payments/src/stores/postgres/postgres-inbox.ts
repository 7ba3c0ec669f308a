import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { Batcher } from '../../inbox/store/batcher.js';
import type { InboxDefinition, InboxStore } from '../../inbox/store/inbox-store.js';
import { SqlEvents } from '../sql/events.js';
import { Pruning, SqlPruning } from '../sql/prune.js';
import { SqlRecords } from '../sql/records.js';
import {
  endPauses,
  forgetHandler,
  pauseHandler,
  readCatalog,
  register,
  retire,
} from '../sql/workers.js';
import {
  ConnectionSource,
  createPool,
  isValueError,
  reachServer,
} from './connection/connection-source.js';
import { WakeListener, WakeNotifier } from './connection/wake-notifications.js';
import { migrate } from './migrate.js';
import { resolvePostgresOptions } from './postgres-options.js';
import type {
  PostgresInboxOptions,
  PostgresTransaction,
  ResolvedPostgresOptions,
} from './postgres-options.js';
import { claims } from './sql/claim.js';
import { committing } from './sql/commit.js';
import { PostgresSql, quoted } from './sql/postgres-sql.js';
import { PostgresExpectations } from './sql/expectations.js';
import { receiver } from './sql/receive.js';
import { redrive, skip } from './sql/redrive.js';
import { settlements } from './sql/settle.js';
import { heartbeats } from './sql/workers.js';

/**
 * Stores events in PostgreSQL 13 or later, in a schema of its own. The inbox is durable, any number of processes can
 * share it, and its store clock is the clock of the database. The inbox needs the `pg` package: `npm install pg`.
 *
 * `context.commit(work)` runs `work` and settles the delivery in one transaction. The parameter `tx` of `work` is the
 * `pg` client or, with `runTransaction`, the transaction of the application's ORM or query builder. Keep the
 * transaction short, because it occupies a connection. Do slow work before the commit.
 *
 * Behind a pooler that gives each transaction another connection (PgBouncer), pass a `pool`, because such a pooler
 * rejects the timeouts that the inbox's own connections set. On a `pool`, the inbox prepares statements only if
 * `preparedStatements` is set. Notifications do not pass through such a pooler, so a process finds the deliveries of
 * other processes only when it looks for due deliveries (`pollMs`).
 *
 * @example
 * ```ts
 * PaymentsModule.forRoot({
 *   // …
 *   inbox: postgresInbox({ connectionString: process.env.DATABASE_URL }),
 * })
 * ```
 *
 * @throws PaymentsError `options_invalid`.
 */
export function postgresInbox(options: PostgresInboxOptions): InboxDefinition {
  const resolved = resolvePostgresOptions(options);
  return { name: 'postgres', create: (runtime) => postgresStore(resolved, runtime) };
}

function postgresStore(
  options: ResolvedPostgresOptions,
  runtime: PaymentsRuntime,
): InboxStore<PostgresTransaction> {
  const source = new ConnectionSource(options, runtime);
  const schema = quoted(options.schema);
  const sql = new PostgresSql(source, schema);
  const events = new SqlEvents(sql);
  const notifier = new WakeNotifier(source, options.schema, runtime);
  const listener = new WakeListener(source, options, runtime);
  const receives = new Batcher({
    call: receiver(source, schema),
    maxCalls: 2,
    bytesOf: ({ raw }) => raw.length,
    isValueError,
  });
  const settle = settlements(source, schema, options.statementTimeoutMs, runtime);
  const beat = heartbeats(source, schema, runtime);
  const pruning = new Pruning();

  return {
    capabilities: Object.freeze({
      durable: true,
      shared: true,
      transactional: true,
      ownClock: true,
    }),

    expectations: new PostgresExpectations(sql, source, schema, options.pollMs, notifier),
    records: new SqlRecords(sql),

    async open() {
      source.open(options.pool ?? (await createPool(options)));
      try {
        await reachServer(source, options.startTimeoutMs, runtime);
        await migrate(source, options.schema, runtime);
      } catch (error) {
        await source.close();
        throw error;
      }
    },

    async close() {
      await listener.close();
      await receives.drained();
      await notifier.flush();
      await source.close();
    },

    register: (worker) => register(sql, worker),

    async heartbeat(workerId) {
      const ended = await endPauses(sql);
      const { freed, ...result } = await beat(workerId);
      if (freed || ended) notifier.notify();
      return result;
    },

    retire: (workerId, graceMs) => retire(sql, workerId, graceMs),
    catalog: () => readCatalog(sql),
    forgetHandler: (handler) => forgetHandler(sql, handler),

    async receive(incoming) {
      const receipts = await receives.add(incoming);
      if (receipts.some(({ pending }) => pending)) notifier.notify();
      return receipts;
    },

    ...claims(source, schema, runtime),
    newerHandled: (lease) => events.newerHandled(lease),
    complete: (lease) => settle({ lease, kind: 'done', error: null, dueInMs: null }),
    fail: (lease, { error, frames, retryInMs }) =>
      settle({ lease, kind: 'failed', error, frames, dueInMs: retryInMs }),

    async release(lease, dueInMs = 0) {
      const result = await settle({ lease, kind: 'released', error: null, dueInMs });
      // A process that releases a delivery that is due now is usually closing, so another process has to claim the
      // delivery.
      if (result.settled && dueInMs === 0) notifier.notify();
      return result;
    },

    commit: committing(source, schema, options, runtime, notifier),
    onWake: (wake) => listener.add(wake),
    find: (company, id) => events.find(company, id),
    eventsOf: (company, payment) => events.eventsOf(company, payment),
    list: (query) => events.list(query),
    stats: () => events.stats(),
    failures: () => events.failures(),
    activity: (minutes, bodiesMs) => events.activity(minutes, bodiesMs),

    async redrive(selections, how) {
      const changed = await redrive(source, schema, selections, how);
      if (changed > 0) notifier.notify();
      return changed;
    },

    async skip(selections) {
      const skipped = await skip(source, schema, selections);
      // A waiting delivery may have become claimable.
      if (skipped > 0) notifier.notify();
      return skipped;
    },

    async pause(handler, paused, facts) {
      await pauseHandler(sql, handler, paused, facts);
      if (!paused) notifier.notify();
    },

    prune: (request) => pruning.prune(request, (slice) => new SqlPruning(sql).slice(slice)),
  };
}
