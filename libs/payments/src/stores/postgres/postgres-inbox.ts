import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { Batcher } from '../../inbox/store/batcher.js';
import type {
  ClaimedDelivery,
  ClaimRequest,
  CommitResult,
  DeliverySelection,
  HandlerCatalog,
  HeartbeatResult,
  InboxDefinition,
  InboxStore,
  IncomingEvent,
  Lease,
  SettleResult,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { forgetHandler, forgetSlice, pauseHandler, readCatalog } from '../sql/catalog.js';
import { SqlEvents } from '../sql/events.js';
import { Pruning, SqlPruning } from '../sql/prune.js';
import { register, retire } from '../sql/workers.js';
import { ConnectionSource, createPool } from './connection/connection-source.js';
import { isValueError } from './connection/database-connection.js';
import { PostgresSql } from './connection/postgres-sql.js';
import { reachServer } from './connection/reach-server.js';
import { WakeListener, WakeNotifier } from './connection/wake-notifications.js';
import { migrate } from './migrate.js';
import { resolvePostgresOptions } from './postgres-options.js';
import type {
  PostgresInboxOptions,
  PostgresTransaction,
  ResolvedPostgresOptions,
} from './postgres-options.js';
import { Claims } from './sql/claim.js';
import { CommitTransaction } from './sql/commit.js';
import { PostgresExpectations } from './sql/expectations.js';
import { newerHandled, WaitingDeliveries } from './sql/ordering.js';
import { ReceiveStatement } from './sql/receive.js';
import { redrive, skip } from './sql/redrive.js';
import { layoutOf, quoted } from './sql/schema.js';
import { Settlements } from './sql/settle.js';
import { Heartbeats } from './sql/workers.js';

/**
 * Stores events in PostgreSQL 13 or later, in a schema of its own. The inbox is durable, any number of
 * processes share it, and its store clock is that of the database. It needs the `pg` package: `npm install pg`.
 *
 * `context.commit(work)` runs `work` and settles the delivery in one transaction. Its `tx` is the `pg` client;
 * with `runTransaction` it is the transaction of the application's ORM or query builder. Keep the transaction short, because
 * it uses a connection: do slow work before the commit.
 *
 * Behind a pooler that gives each transaction another connection (PgBouncer), pass a `pool`: such a pooler rejects the
 * timeouts that the inbox's own connections set. On a `pool`, the inbox prepares statements only if `preparedStatements` is
 * set. Notifications do not pass such a pooler, so processes find the deliveries of other processes by polling.
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
  return { name: 'postgres', create: (runtime) => new PostgresStore(resolved, runtime) };
}

/** The store of `postgresInbox()`. */
class PostgresStore extends SqlEvents implements InboxStore<PostgresTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: true,
  });
  readonly expectations: PostgresExpectations;
  readonly #source: ConnectionSource;
  readonly #schema: string;
  readonly #notifier: WakeNotifier;
  readonly #listener: WakeListener;
  readonly #receives: Batcher<IncomingEvent, StoreReceipt>;
  readonly #claims: Claims;
  readonly #settlements: Settlements;
  readonly #commits: CommitTransaction;
  readonly #sql: PostgresSql;
  readonly #pruning = new Pruning();
  readonly #waiting: WaitingDeliveries;
  readonly #heartbeats: Heartbeats;

  constructor(
    private readonly options: ResolvedPostgresOptions,
    private readonly runtime: PaymentsRuntime,
  ) {
    const source = new ConnectionSource(options, runtime);
    const schema = quoted(options.schema);
    const sql = new PostgresSql(source, schema);
    super(sql, layoutOf(schema));
    this.#sql = sql;
    this.#source = source;
    this.#schema = schema;
    this.#notifier = new WakeNotifier(source, options.schema, runtime);
    this.#listener = new WakeListener(source, options, runtime);
    this.expectations = new PostgresExpectations(
      sql,
      source,
      schema,
      options.pollMs,
      this.#notifier,
    );
    const statement = new ReceiveStatement(source, schema);
    this.#receives = new Batcher({
      call: (events) => statement.receive(events),
      maxCalls: 2,
      bytesOf: ({ raw }) => raw.length,
      isValueError,
    });
    this.#claims = new Claims(source, schema, runtime);
    this.#settlements = new Settlements(source, schema, options.statementTimeoutMs, runtime);
    this.#commits = new CommitTransaction(source, schema, options, runtime);
    this.#waiting = new WaitingDeliveries(source, schema);
    this.#heartbeats = new Heartbeats(source, schema, runtime);
  }

  async open(): Promise<void> {
    const { options, runtime } = this;
    this.#source.open(options.pool ?? (await createPool(options)));
    try {
      const isolation = await reachServer(this.#source, options.startTimeoutMs, runtime);
      if (isolation !== 'read committed') this.#source.setIsolation();
      await migrate(this.#source, options.schema, runtime);
    } catch (error) {
      await this.#source.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#listener.close();
    await this.#receives.drained();
    await this.#notifier.flush();
    await this.#source.close();
  }

  async register(worker: WorkerRegistration): Promise<HandlerCatalog> {
    return register(this.#sql, worker);
  }

  async heartbeat(workerId: string): Promise<HeartbeatResult> {
    const { freed, ...result } = await this.#heartbeats.send(workerId);
    if (freed) this.#notifier.notify();
    return result;
  }

  async retire(workerId: string, graceMs: number): Promise<void> {
    await retire(this.#sql, workerId, graceMs);
  }

  async catalog(): Promise<HandlerCatalog> {
    return readCatalog(this.#sql);
  }

  async forgetHandler(handler: string): Promise<number | null> {
    const slice = (name: string) => forgetSlice(this.#sql, layoutOf(this.#schema), name);
    return forgetHandler(slice, handler);
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.#receives.add(events);
    if (receipts.some(({ pending }) => pending)) this.#notifier.notify();
    return receipts;
  }

  async claim(request: ClaimRequest): Promise<ClaimedDelivery[]> {
    return this.#claims.claim(request);
  }

  async claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null> {
    return this.#claims.claimSuspect(request);
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#claims.nextDueInMs(handlers);
  }

  async newerHandled(lease: Lease): Promise<boolean> {
    return newerHandled(this.#source, this.#schema, lease);
  }

  async complete(lease: Lease): Promise<SettleResult> {
    return this.#settlements.settle({ lease, kind: 'done', error: null, dueInMs: null });
  }

  async fail(
    lease: Lease,
    { error, retryInMs }: { error: string; retryInMs: number | null },
  ): Promise<SettleResult> {
    return this.#settlements.settle({ lease, kind: 'failed', error, dueInMs: retryInMs });
  }

  async release(lease: Lease, dueInMs = 0): Promise<SettleResult> {
    const result = await this.#settlements.settle({
      lease,
      kind: 'released',
      error: null,
      dueInMs,
    });
    // A process that releases a delivery that is due now usually closes, so another process has to claim it.
    if (result.settled && dueInMs === 0) this.#notifier.notify();
    return result;
  }

  async commit<R>(
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    const { runTransaction } = this.options;
    if (runTransaction === undefined) return this.#commits.commit(lease, work);
    // The application ensures that the handler expects the transaction type of `runTransaction`.
    return this.#commits.commitWith(lease, runTransaction, work as (tx: unknown) => R | Promise<R>);
  }

  onWake(listener: () => void): () => void {
    return this.#listener.add(listener);
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: Parameters<InboxStore['redrive']>[1],
  ): Promise<number> {
    const changed = await redrive(this.#source, this.#schema, selections, options);
    if (changed > 0) this.#notifier.notify();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const skipped = await skip(this.#source, this.#schema, selections);
    // A waiting delivery may have become claimable.
    if (skipped > 0) this.#notifier.notify();
    return skipped;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    await pauseHandler(this.#sql, handler, paused);
    if (!paused) this.#notifier.notify();
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    if (await this.#waiting.release()) this.#notifier.notify();
    const pruning = new SqlPruning(this.#sql, layoutOf(this.#schema));
    return this.#pruning.prune(request, (slice) => pruning.slice(slice));
  }
}
