import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  ActivityMinute,
  ClaimedDelivery,
  ClaimRequest,
  CommitResult,
  DeliverySelection,
  EventPage,
  HandlerCatalog,
  HeartbeatResult,
  InboxStats,
  InboxStore,
  IncomingEvent,
  Lease,
  SettleResult,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../store/inbox-store.js';
import { PostgresInboxError } from './connection/database-failure.js';
import { openStore } from './open-store.js';
import type { OpenStore } from './open-store.js';
import type { ResolvedPostgresOptions } from './postgres-options.js';
import { readActivity, summarize } from './sql/activity.js';
import { forgetHandler, readCatalog } from './sql/catalog.js';
import { claimSuspect } from './sql/claim-suspect.js';
import { find } from './sql/find.js';
import { list } from './sql/list.js';
import { pause } from './sql/pause.js';
import { redrive } from './sql/redrive.js';
import { lockNumber, quoted } from './sql/schema.js';
import { completed, failed, released } from './sql/settle.js';
import type { Ended } from './sql/settle.js';
import { skip } from './sql/skip.js';
import { readStats } from './sql/stats.js';
import { heartbeat, register, retire } from './sql/workers.js';
import type { PostgresTransaction } from './transaction-runner.js';

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

  async heartbeat(worker: string): Promise<HeartbeatResult> {
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
    const settlement = await this.#settle(released(lease, dueInMs));
    // A process that releases is about to close, so others have to claim it.
    if (settlement.settled) notifier.notify();
    return settlement;
  }

  async commit<R>(
    lease: Lease,
    work: (tx: PostgresTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
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
    const { notifier, pruning, stranded } = this.#open();
    if (await stranded.release()) notifier.notify();
    return pruning.prune(request);
  }

  async #settle(ended: Ended): Promise<SettleResult> {
    return this.#open().settlements.settle(ended);
  }

  #open(): OpenStore {
    if (this.#parts === null) {
      throw new PostgresInboxError('The PostgreSQL inbox is closed, or not open yet.', null);
    }
    return this.#parts;
  }
}
