import { Logger } from '@nestjs/common';
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
  IncomingEvent,
  InboxStats,
  InboxStore,
  Lease,
  Settlement,
  StoredEvent,
  StoreReceipt,
  SuspectRequest,
  WorkerRegistration,
} from '../inbox-store.js';
import { toActivity, toCatalog, toClaimed, toEvent, toReceipts, toStats } from './answers.js';
import { SqliteCommitter } from './commit/committer.js';
import type { SqliteTransaction } from './commit/transaction.js';
import { sharedFilesWarning } from './file-modes.js';
import { listPage } from './list-page.js';
import { FORGET_SLICE } from './sql/catalog.js';
import type { PruneCursor } from './sql/prune.js';
import type { LeaseName } from './sql/settle.js';
import { toError, toFailure, unavailable } from './sqlite-failure.js';
import type { SqliteSettings } from './sqlite-options.js';
import { isOldSqlite, oldSqliteReason } from './sqlite-version.js';
import { StoreClock } from './store-clock.js';
import { SqliteClient } from './thread/client.js';
import { openCommitter } from './thread/connection.js';
import type { SqliteConnection } from './thread/connection.js';
import { loadDriver } from './thread/driver.js';
import type { AnswerOf, OperationName, RequestOf } from './thread/operations.js';

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
  readonly #logger = new Logger('PaymentInbox');
  readonly #listeners = new Set<() => void>();
  readonly #clock: StoreClock;
  readonly #client: SqliteClient;
  readonly #committer: SqliteCommitter;
  #connection: SqliteConnection | undefined;
  #stage: 'new' | 'open' | 'closed' = 'new';

  constructor(
    private readonly settings: SqliteSettings,
    runtime: PaymentsRuntime,
  ) {
    this.#clock = new StoreClock(runtime);
    this.#client = new SqliteClient(
      settings,
      () => this.#wake(),
      (clock) => this.#clock.advanceTo(clock),
    );
    this.#committer = new SqliteCommitter(
      this.#client,
      () => this.#connection!,
      settings.busyTimeoutMs,
      () => this.#clock.read(),
    );
  }

  async open(): Promise<void> {
    const { sqliteVersion, clock } = await this.#client.open();
    if (isOldSqlite(sqliteVersion)) {
      this.#logger.warn(
        `${oldSqliteReason(sqliteVersion)}. It is used because of "allowOldSqlite".`,
      );
    }
    this.#clock.start(clock);
    try {
      this.#connection = openCommitter(await loadDriver(), this.settings.file);
    } catch (error) {
      await this.#client.close();
      throw toError(toFailure(error));
    }
    const warning = sharedFilesWarning(this.settings.file);
    if (warning !== null) this.#logger.warn(warning);
    this.#stage = 'open';
    // The other processes learn of this one's clock. If it fails, the first write stores the clock.
    this.#ask('sync', null).catch(() => {});
  }

  async close(): Promise<void> {
    this.#stage = 'closed';
    await this.#committer.idle();
    this.#listeners.clear();
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }

  async register({ id, leaseMs, handlers }: WorkerRegistration): Promise<HandlerCatalog> {
    const declared = handlers.map(({ name, patterns }) => ({ name, patterns }));
    return toCatalog(await this.#ask('register', { id, leaseMs, handlers: declared }));
  }

  async heartbeat(worker: string): Promise<Heartbeat> {
    const { alive, suspects, freed } = await this.#ask('heartbeat', { worker });
    if (freed > 0) this.#wake();
    return { alive, suspects };
  }

  async retire(worker: string, graceMs: number): Promise<void> {
    await this.#ask('retire', { worker, graceMs });
  }

  async catalog(): Promise<HandlerCatalog> {
    return toCatalog(await this.#ask('catalog', null));
  }

  async forgetHandler(handler: string): Promise<number | null> {
    let skipped = 0;
    for (let last = FORGET_SLICE; last === FORGET_SLICE; skipped += last) {
      const slice = await this.#ask('forgetHandler', { handler });
      if (slice === null) return skipped === 0 ? null : skipped;
      last = slice;
    }
    return skipped;
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.#ask('receive', {
      events: events.map((event) => ({
        company: event.company,
        id: event.id,
        eventType: event.eventType,
        occurredAt: event.occurredAt.getTime(),
        orderingKey: event.orderingKey,
        // Copies only the body: a view of a pooled buffer would take the whole pool along.
        raw: new Uint8Array(event.raw),
        headers: event.headers,
        onceKey: event.onceKey,
        handlers: event.handlers,
        catalogVersion: event.catalogVersion,
        assign: event.assign,
        stale: event.stale,
      })),
    });
    if (receipts.some(({ pending }) => pending)) this.#wake();
    return toReceipts(receipts, events);
  }

  async claim(request: ClaimRequest): Promise<ClaimedDelivery[]> {
    const claimed = await this.#ask('claim', request);
    return Array.from(claimed, (delivery) => toClaimed(delivery));
  }

  async claimSuspect(request: SuspectRequest): Promise<ClaimedDelivery | null> {
    const claimed = await this.#ask('claimSuspect', request);
    return claimed && toClaimed(claimed);
  }

  async complete(lease: Lease): Promise<Settlement> {
    return this.#settled(await this.#ask('complete', { lease: named(lease) }));
  }

  async fail(
    lease: Lease,
    failure: { error: string; retryInMs: number | null },
  ): Promise<Settlement> {
    const { error, retryInMs } = failure;
    const settlement = await this.#ask('fail', { lease: named(lease), error, retryInMs });
    if (settlement.settled && retryInMs !== null) this.#wake();
    return this.#settled(settlement);
  }

  async release(lease: Lease, dueInMs = 0): Promise<Settlement> {
    const settlement = await this.#ask('release', { lease: named(lease), dueInMs });
    if (settlement.settled) this.#wake();
    return this.#settled(settlement);
  }

  async commit<R>(
    lease: Lease,
    work: (tx: SqliteTransaction) => R | Promise<R>,
  ): Promise<Committed<R>> {
    this.#check();
    // A promise was refused before it gets here.
    const { result, nextDue } = (await this.#committer.commit(lease, work)) as Committed<R>;
    if (nextDue) this.#wake();
    return { result, nextDue };
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    return this.#ask('nextDue', { handlers });
  }

  onWake(listener: () => void): () => void {
    // A function of its own, so that one listener added twice is two.
    const added = () => listener();
    if (this.#listeners.size === 0) this.#client.listen(true);
    this.#listeners.add(added);
    return () => {
      if (this.#listeners.delete(added) && this.#listeners.size === 0) this.#client.listen(false);
    };
  }

  async find(company: string, id: string): Promise<StoredEvent | undefined> {
    const found = await this.#ask('find', { company, id });
    return found && toEvent(found);
  }

  async list(query: Parameters<InboxStore['list']>[0]): Promise<EventPage> {
    return listPage(query, (slice) => this.#ask('listSlice', slice));
  }

  async stats(): Promise<InboxStats> {
    return toStats(await this.#ask('stats', null));
  }

  async summarize(): Promise<void> {
    let from: number | null = null;
    do {
      from = await this.#ask('summarize', { from });
    } while (from !== null);
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    return toActivity(await this.#ask('activity', { minutes }));
  }

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    const { force, dueInMs } = options;
    const changed = await this.#ask('redrive', { selections, force, dueInMs });
    if (changed > 0) this.#wake();
    return changed;
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    const skipped = await this.#ask('skip', { selections });
    if (skipped > 0) this.#wake();
    return skipped;
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    await this.#ask('pause', { handler, paused });
    if (!paused) this.#wake();
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
      const pruned: AnswerOf<'prune'> = await this.#ask('prune', {
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

  async #ask<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
  ): Promise<AnswerOf<Name>> {
    this.#check();
    return this.#client.call(name, request, this.#clock.read());
  }

  #settled({ settled, nextDue }: Settlement): Settlement {
    if (nextDue) this.#wake();
    return { settled, nextDue };
  }

  #check(): void {
    if (this.#stage === 'new') throw unavailable('is not open yet.');
    if (this.#stage === 'closed') throw unavailable('is closed.');
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** The lease without the body and the rest of a claimed delivery. */
function named({ seq, handler, token }: Lease): LeaseName {
  return { seq, handler, token };
}
