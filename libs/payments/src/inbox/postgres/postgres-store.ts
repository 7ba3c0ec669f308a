import type { PaymentsRuntime } from '../../payments.runtime.js';
import type {
  ActivityMinute,
  ClaimedDelivery,
  ClaimRequest,
  Committed,
  DeliverySelection,
  EventPage,
  HandlerCatalog,
  Heartbeat,
  InboxStats,
  InboxStore,
  IncomingEvent,
  Lease,
  Settlement,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../inbox-store.js';
import { CommitSemaphore } from './commit-semaphore.js';
import { ConnectionSource } from './connection/connection-source.js';
import { endWithin, openPool } from './connection/connection-pool.js';
import { PostgresInboxError } from './connection/database-failure.js';
import { migrate } from './connection/schema-migrator.js';
import { checkServer } from './connection/server-check.js';
import { WakeListener } from './connection/wake-listener.js';
import { WakeNotifier } from './connection/wake-notifier.js';
import type { ResolvedPostgresOptions } from './postgres-options.js';
import { ReceiveQueue } from './receive-queue.js';
import { SettleQueue } from './settle-queue.js';
import { readActivity, summarize } from './sql/activity.js';
import { forgetHandler, readCatalog } from './sql/catalog.js';
import { ClaimCursors } from './sql/claim-cursors.js';
import { claimSuspect } from './sql/claim-suspect.js';
import { ClaimStatement } from './sql/claim.js';
import { CommitTransaction } from './sql/commit.js';
import { find } from './sql/find.js';
import { list } from './sql/list.js';
import { NextDueStatement } from './sql/next-due.js';
import { pause } from './sql/pause.js';
import { prune } from './sql/prune.js';
import { ReceiveStatement } from './sql/receive.js';
import { redrive } from './sql/redrive.js';
import { lockNumber, quoted } from './sql/schema.js';
import { completed, failed, released, SettleStatement } from './sql/settle.js';
import type { Ended } from './sql/settle.js';
import { skip } from './sql/skip.js';
import { readStats } from './sql/stats.js';
import { heartbeat, register, retire } from './sql/workers.js';
import type { PostgresTransaction } from './transaction-runner.js';

/** What an open store consists of. */
interface OpenStore {
  readonly source: ConnectionSource;
  readonly receives: ReceiveQueue;
  readonly claims: ClaimStatement;
  readonly nextDue: NextDueStatement;
  readonly settlements: SettleQueue;
  readonly commits: CommitTransaction;
  readonly notifier: WakeNotifier;
  readonly listener: WakeListener;
  close(): Promise<void>;
}

/** The store of `postgresInbox()`. */
export class PostgresStore implements InboxStore<PostgresTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: true,
  });
  readonly #schema: string;
  #parts: OpenStore | null = null;

  constructor(
    private readonly options: ResolvedPostgresOptions,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#schema = quoted(options.schema);
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

  async heartbeat(worker: string): Promise<Heartbeat> {
    const { source, notifier } = this.#open();
    const { freed, ...answer } = await heartbeat(source, this.#schema, worker);
    if (freed) notifier.notify();
    return answer;
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

  async complete(lease: Lease): Promise<Settlement> {
    return this.#settle(completed(lease));
  }

  async fail(
    lease: Lease,
    failure: { error: string; retryInMs: number | null },
  ): Promise<Settlement> {
    return this.#settle(failed(lease, failure));
  }

  async release(lease: Lease, dueInMs = 0): Promise<Settlement> {
    const { notifier } = this.#open();
    const settlement = await this.#settle(released(lease, dueInMs));
    // A process that releases is about to close, so others have to claim it.
    if (settlement.settled) notifier.notify();
    return settlement;
  }

  async commit<R>(
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<Committed<R>> {
    const { commits } = this.#open();
    const { runTransaction } = this.options;
    if (runTransaction === undefined) return commits.commit(lease, work);
    // The handler names the type of the transaction of `runTransaction`.
    return commits.commitWith(lease, runTransaction, work as (tx: unknown) => R | Promise<R>);
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#open().nextDue.nextDueInMs(handlers);
  }

  onWake(listener: () => void): () => void {
    return this.#open().listener.add(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    return find(this.#open().source, this.#schema, company, id);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return list(this.#open().source, this.#schema, query);
  }

  async stats(): Promise<InboxStats> {
    return readStats(this.#open().source, this.#schema);
  }

  async summarize(): Promise<void> {
    const lock = lockNumber(this.options.schema, 'activity');
    await summarize(this.#open().source, this.#schema, lock);
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return readActivity(this.#open().source, this.#schema, minutes);
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
    // A held delivery may have become due.
    if (skipped > 0) notifier.notify();
    return skipped;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    const { source, notifier } = this.#open();
    await pause(source, this.#schema, handler, paused);
    if (!paused) notifier.notify();
  }

  async prune(request: Parameters<InboxStore['prune']>[0]): Promise<number> {
    return prune(this.#open().source, this.#schema, request);
  }

  async #settle(ended: Ended): Promise<Settlement> {
    return this.#open().settlements.settle(ended);
  }

  #open(): OpenStore {
    if (this.#parts === null) {
      throw new PostgresInboxError('The PostgreSQL inbox is closed, or not open yet.', null);
    }
    return this.#parts;
  }
}

/** Connects, checks the server and sets up the schema. */
async function openStore(
  options: ResolvedPostgresOptions,
  schema: string,
  runtime: PaymentsRuntime,
): Promise<OpenStore> {
  const { connectTimeoutMs, statementTimeoutMs, pollMs } = options;
  const { pool, size, listeningClient } = await openPool(options);
  const source = new ConnectionSource(pool, options, runtime);
  const end = async (): Promise<void> => {
    source.close();
    if (options.pool === undefined) await endWithin(connectTimeoutMs, runtime, pool.end());
  };
  try {
    await checkServer(source);
    await migrate(source, options.schema, runtime);
  } catch (error) {
    await end();
    throw error;
  }
  const receive = new ReceiveStatement(source, schema);
  const receives = new ReceiveQueue((events) => receive.receive(events));
  const settle = new SettleStatement(source, schema);
  const notifier = new WakeNotifier(source, options.schema, runtime);
  const listener = new WakeListener(listeningClient, options.schema, pollMs, runtime);
  const cursors = new ClaimCursors(source, schema, runtime, () => listener.wake());
  const semaphore = new CommitSemaphore(commitPlaces(size), connectTimeoutMs, runtime);
  return {
    source,
    receives,
    notifier,
    listener,
    claims: new ClaimStatement(source, schema, cursors),
    nextDue: new NextDueStatement(source, schema, cursors),
    settlements: new SettleQueue((all) => settle.settle(all), statementTimeoutMs, runtime),
    commits: new CommitTransaction(source, schema, semaphore, runtime),
    async close() {
      await endWithin(connectTimeoutMs, runtime, listener.close());
      await receives.drained();
      await notifier.flush();
      await end();
    },
  };
}

/** How many connections of the pool `context.commit` may use: the others are for receives, claims and settlements. */
function commitPlaces(poolSize: number): number {
  return Math.max(1, poolSize - (poolSize >= 12 ? 4 : 2));
}
