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
  IncomingEvent,
  InboxStats,
  InboxStore,
  Lease,
  SettleResult,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../store/inbox-store.js';
import { toActivity, toCatalog, toClaimed, toEvent, toReceipts, toStats } from './answers.js';
import type { SqliteTransaction } from './commit/transaction.js';
import { FORGET_SLICE } from './sql/catalog.js';
import { listPage } from './sql/search.js';
import type { PruneCursor } from './sql/prune.js';
import type { LeaseName } from './sql/settle.js';
import type { SqliteSettings } from './sqlite-options.js';
import { SqliteSession } from './sqlite-session.js';
import type { AnswerOf } from './thread/operations.js';

/** Events pruned in one transaction: a receive that arrives meanwhile waits for no more than these. */
const PRUNE_SLICE = 100;

/** The store of `sqliteInbox()`: sends operations to the thread, which has the database. */
export class SqliteStore implements InboxStore<SqliteTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: false,
  });
  readonly #session: SqliteSession;

  constructor(settings: SqliteSettings, runtime: PaymentsRuntime) {
    this.#session = new SqliteSession(settings, runtime);
  }

  open(): Promise<void> {
    return this.#session.open();
  }

  close(): Promise<void> {
    return this.#session.close();
  }

  async register({ id, leaseMs, handlers }: WorkerRegistration): Promise<HandlerCatalog> {
    const declared = handlers.map(({ name, patterns }) => ({ name, patterns }));
    return toCatalog(await this.#session.ask('register', { id, leaseMs, handlers: declared }));
  }

  async heartbeat(worker: string): Promise<HeartbeatResult> {
    const { alive, suspects, freed } = await this.#session.ask('heartbeat', { worker });
    if (freed > 0) this.#session.wake();
    return { alive, suspects };
  }

  async retire(worker: string, graceMs: number): Promise<void> {
    await this.#session.ask('retire', { worker, graceMs });
  }

  async catalog(): Promise<HandlerCatalog> {
    return toCatalog(await this.#session.ask('catalog', null));
  }

  async forgetHandler(handler: string): Promise<number | null> {
    let skipped = 0;
    for (let last = FORGET_SLICE; last === FORGET_SLICE; skipped += last) {
      const slice = await this.#session.ask('forgetHandler', { handler });
      if (slice === null) return skipped === 0 ? null : skipped;
      last = slice;
    }
    return skipped;
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.#session.ask('receive', {
      events: events.map((event) => ({
        company: event.company,
        id: event.id,
        eventType: event.eventType,
        occurredAt: event.occurredAt.getTime(),
        orderingKey: event.orderingKey,
        // Copies only the body: a view of a pooled buffer would take the whole pool along.
        raw: new Uint8Array(event.raw),
        headers: JSON.stringify(event.headers),
        onceKey: event.onceKey,
        handlers: event.handlers,
        catalogVersion: event.catalogVersion,
        assign: event.assign,
        stale: event.stale,
      })),
    });
    if (receipts.some(({ pending }) => pending)) this.#session.wake();
    return toReceipts(receipts, events);
  }

  async claim(request: ClaimRequest): Promise<ClaimedDelivery[]> {
    const claimed = await this.#session.ask('claim', request);
    return Array.from(claimed, (delivery) => toClaimed(delivery));
  }

  async claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null> {
    const claimed = await this.#session.ask('claimSuspect', request);
    return claimed && toClaimed(claimed);
  }

  async complete(lease: Lease): Promise<SettleResult> {
    return this.#settled(await this.#session.ask('complete', { lease: named(lease) }));
  }

  async fail(
    lease: Lease,
    failure: { error: string; retryInMs: number | null },
  ): Promise<SettleResult> {
    const { error, retryInMs } = failure;
    const settlement = await this.#session.ask('fail', { lease: named(lease), error, retryInMs });
    if (settlement.settled && retryInMs !== null) this.#session.wake();
    return this.#settled(settlement);
  }

  async release(lease: Lease, dueInMs = 0): Promise<SettleResult> {
    const settlement = await this.#session.ask('release', { lease: named(lease), dueInMs });
    if (settlement.settled) this.#session.wake();
    return this.#settled(settlement);
  }

  async commit<R>(
    lease: Lease,
    work: (tx: SqliteTransaction) => R | Promise<R>,
  ): Promise<CommitResult<R>> {
    // A promise was refused before it gets here.
    const { result, nextDue } = (await this.#session.commit(lease, work)) as CommitResult<R>;
    if (nextDue) this.#session.wake();
    return { result, nextDue };
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#session.ask('nextDue', { handlers });
  }

  onWake(listener: () => void): () => void {
    return this.#session.onWake(listener);
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const found = await this.#session.ask('find', { company, id });
    return found && toEvent(found);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return listPage(query, (slice) => this.#session.ask('listSlice', slice));
  }

  async stats(): Promise<InboxStats> {
    return toStats(await this.#session.ask('stats', null));
  }

  async summarize(): Promise<void> {
    let from: number | null = null;
    do {
      from = await this.#session.ask('summarize', { from });
    } while (from !== null);
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return toActivity(await this.#session.ask('activity', { minutes }));
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    const { force, dueInMs } = options;
    const changed = await this.#session.ask('redrive', { selections, force, dueInMs });
    if (changed > 0) this.#session.wake();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const skipped = await this.#session.ask('skip', { selections });
    if (skipped > 0) this.#session.wake();
    return skipped;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    await this.#session.ask('pause', { handler, paused });
    if (!paused) this.#session.wake();
  }

  async prune({
    bodiesMs,
    tombstonesMs,
    limit,
  }: Parameters<InboxStore['prune']>[0]): Promise<number> {
    let changed = 0;
    let done = false;
    let after: PruneCursor | null = null;
    while (!done && changed < limit) {
      const slice = Math.min(PRUNE_SLICE, limit - changed);
      const pruned: AnswerOf<'prune'> = await this.#session.ask('prune', {
        bodiesMs,
        tombstonesMs,
        limit: slice,
        after,
      });
      changed += pruned.changed;
      ({ done, next: after } = pruned);
    }
    return changed;
  }

  #settled({ settled, nextDue }: SettleResult): SettleResult {
    if (nextDue) this.#session.wake();
    return { settled, nextDue };
  }
}

/** The lease without the body and the rest of a claimed delivery. */
function named({ seq, handler, token }: Lease): LeaseName {
  return { seq, handler, token };
}
