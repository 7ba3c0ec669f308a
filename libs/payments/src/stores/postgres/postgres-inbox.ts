import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  ClaimedDelivery,
  ClaimRequest,
  CommitResult,
  DeliverySelection,
  EventPage,
  HandlerCatalog,
  HeartbeatResult,
  InboxActivity,
  InboxDefinition,
  InboxStats,
  InboxStore,
  IncomingEvent,
  Lease,
  SettleResult,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { PostgresInboxError } from './connection/database-connection.js';
import { openStore } from './open-store.js';
import type { OpenStore } from './open-store.js';
import { resolvePostgresOptions } from './postgres-options.js';
import type {
  PostgresInboxOptions,
  PostgresTransaction,
  ResolvedPostgresOptions,
} from './postgres-options.js';
import { forgetHandler, pause, readCatalog } from './sql/catalog.js';
import { claimSuspect } from './sql/claim.js';
import { PostgresExpectations } from './sql/expectations.js';
import { redrive, skip } from './sql/redrive.js';
import { newerHandled } from './sql/ordering.js';
import { quoted } from './sql/schema.js';
import { completed, failed, released } from './sql/settle.js';
import type { LeaseOutcome } from './sql/settle.js';
import { heartbeat, register, retire } from './sql/workers.js';

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
class PostgresStore implements InboxStore<PostgresTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: true,
  });
  readonly expectations: PostgresExpectations;
  readonly #schema: string;
  #parts: OpenStore | null = null;

  constructor(
    private readonly options: ResolvedPostgresOptions,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#schema = quoted(options.schema);
    this.expectations = new PostgresExpectations(() => this.#open(), this.#schema, options.pollMs);
  }

  async open(): Promise<void> {
    this.#parts = await openStore(this.options, this.#schema, this.runtime);
  }

  async close(): Promise<void> {
    const parts = this.#parts;
    this.#parts = null;
    await parts?.close();
  }

  async register(worker: WorkerRegistration): Promise<HandlerCatalog> {
    return register(this.#open().source, this.#schema, worker);
  }

  async heartbeat(worker: string): Promise<HeartbeatResult> {
    const { source, notifier } = this.#open();
    const { freed, ...result } = await heartbeat(source, this.#schema, worker);
    if (freed) notifier.notify();
    return result;
  }

  async retire(worker: string, graceMs: number): Promise<void> {
    await retire(this.#open().source, this.#schema, worker, graceMs);
  }

  async catalog(): Promise<HandlerCatalog> {
    return readCatalog(this.#open().source, this.#schema);
  }

  async forgetHandler(handler: string): Promise<number | null> {
    return forgetHandler(this.#open().source, this.#schema, handler);
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const { receives, notifier } = this.#open();
    const receipts = await receives.receive(events);
    if (receipts.some(({ pending }) => pending)) notifier.notify();
    return receipts;
  }

  async claim(request: ClaimRequest): Promise<ClaimedDelivery[]> {
    return this.#open().claims.claim(request);
  }

  async claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null> {
    return claimSuspect(this.#open().source, this.#schema, request);
  }

  async newerHandled(lease: Lease): Promise<boolean> {
    return newerHandled(this.#open().source, this.#schema, lease);
  }

  async complete(lease: Lease): Promise<SettleResult> {
    return this.#settle(completed(lease));
  }

  async fail(
    lease: Lease,
    failure: { error: string; retryInMs: number | null },
  ): Promise<SettleResult> {
    return this.#settle(failed(lease, failure));
  }

  async release(lease: Lease, dueInMs = 0): Promise<SettleResult> {
    const { notifier } = this.#open();
    const result = await this.#settle(released(lease, dueInMs));
    // A process that releases a delivery that is due now usually closes, so another process has to claim it.
    if (result.settled && dueInMs === 0) notifier.notify();
    return result;
  }

  async commit<R>(
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    const { commits } = this.#open();
    const { runTransaction } = this.options;
    if (runTransaction === undefined) return commits.commit(lease, work);
    // The application ensures that the handler expects the transaction type of `runTransaction`.
    return commits.commitWith(lease, runTransaction, work as (tx: unknown) => R | Promise<R>);
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#open().claims.nextDueInMs(handlers);
  }

  onWake(listener: () => void): () => void {
    return this.#open().listener.add(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    return this.#open().events.find(company, id);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return this.#open().events.list(query);
  }

  async stats(): Promise<InboxStats> {
    return this.#open().events.stats();
  }

  async failures(): ReturnType<InboxStore['failures']> {
    return this.#open().events.failures();
  }

  async activity(minutes: number, bodiesMs: number): Promise<InboxActivity> {
    return this.#open().events.activity(minutes, bodiesMs);
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    const { source, notifier } = this.#open();
    const changed = await redrive(source, this.#schema, selections, options);
    if (changed > 0) notifier.notify();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const { source, notifier } = this.#open();
    const skipped = await skip(source, this.#schema, selections);
    // A waiting delivery may have become claimable.
    if (skipped > 0) notifier.notify();
    return skipped;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    const { source, notifier } = this.#open();
    await pause(source, this.#schema, handler, paused);
    if (!paused) notifier.notify();
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    const { notifier, pruning, waiting } = this.#open();
    if (await waiting.release()) notifier.notify();
    return pruning.prune(request);
  }

  async #settle(outcome: LeaseOutcome): Promise<SettleResult> {
    return this.#open().outcomes.settle(outcome);
  }

  #open(): OpenStore {
    if (this.#parts === null) {
      throw new PostgresInboxError('The PostgreSQL inbox is closed or not open yet.', null);
    }
    return this.#parts;
  }
}
