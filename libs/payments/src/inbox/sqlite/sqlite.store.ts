import { Logger } from '@nestjs/common';
import type { PaymentsRuntime } from '../../payments.runtime.js';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventPage,
  IncomingEvent,
  InboxStats,
  InboxStore,
  Lease,
  StoredEvent,
  StoreReceipt,
} from '../inbox-store.js';
import { toActivity } from '../activity.minutes.js';
import type { ActivityCounts, ActivityMinute } from '../activity.minutes.js';
import { sharedFilesWarning } from './file-modes.js';
import { toClaimed, toEvent, toReceipts, toStats } from './sqlite.answers.js';
import type { ClaimRequest } from './sqlite.claim.js';
import { SqliteClient } from './sqlite.client.js';
import { SqliteCommitter } from './sqlite.committer.js';
import { openCommitter } from './sqlite.connection.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { loadDriver } from './sqlite.driver.js';
import { toError, toFailure, unavailable } from './sqlite.failure.js';
import type { AnswerOf, OperationName, RequestOf } from './sqlite.operations.js';
import type { SqliteSettings } from './sqlite.options.js';
import { listPage } from './sqlite.page.js';
import type { PruneRequest } from './sqlite.prune.js';
import type { SqliteTransaction } from './sqlite.transaction.js';
import { isOldSqlite, oldSqliteReason } from './sqlite.version.js';

/** Events pruned in one transaction: a receive that comes meanwhile waits for no more than these. */
const PRUNE_SLICE = 100;

/** The store behind `sqliteInbox()`: asks the thread, which has the database. */
export class SqliteStore implements InboxStore<SqliteTransaction> {
  readonly capabilities = Object.freeze({
    durable: true,
    shared: true,
    transactional: true,
    ownClock: false,
  });
  readonly #logger = new Logger('PaymentInbox');
  readonly #listeners = new Set<() => void>();
  readonly #client: SqliteClient;
  readonly #committer: SqliteCommitter;
  #connection: SqliteConnection | undefined;
  #stage: 'new' | 'open' | 'closed' = 'new';

  constructor(
    private readonly settings: SqliteSettings,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#client = new SqliteClient(settings, () => this.#wake());
    this.#committer = new SqliteCommitter(
      this.#client,
      () => this.#connection!,
      settings.busyTimeoutMs,
      () => runtime.now(),
    );
  }

  async open(): Promise<void> {
    const version = await this.#client.open();
    if (isOldSqlite(version)) {
      this.#logger.warn(`${oldSqliteReason(version)}. It is used because of "allowOldSqlite".`);
    }
    try {
      this.#connection = openCommitter(await loadDriver(), this.settings.file);
    } catch (error) {
      await this.#client.close();
      throw toError(toFailure(error));
    }
    const warning = sharedFilesWarning(this.settings.file);
    if (warning !== null) this.#logger.warn(warning);
    this.#stage = 'open';
  }

  async close(): Promise<void> {
    this.#stage = 'closed';
    await this.#committer.idle();
    this.#listeners.clear();
    this.#connection?.close();
    this.#connection = undefined;
    await this.#client.close();
  }

  async receive(events: readonly IncomingEvent[]): Promise<StoreReceipt[]> {
    const receipts = await this.#ask('receive', {
      // A copy of the body alone: a view of a pooled buffer would take the whole pool along.
      events: events.map((event) => ({
        company: event.company,
        id: event.id,
        dedupeKey: event.dedupeKey,
        eventType: event.eventType,
        occurredAt: event.occurredAt.getTime(),
        orderingKey: event.orderingKey,
        raw: new Uint8Array(event.raw),
        headers: event.headers,
        handlers: event.handlers,
        stale: event.stale,
      })),
    });
    if (receipts.some(({ outcome }) => outcome === 'stored')) this.#wake();
    return toReceipts(receipts);
  }

  async claim(request: ClaimRequest): Promise<ClaimedDelivery[]> {
    return toClaimed(await this.#ask('claim', request));
  }

  extend(lease: Lease, leaseMs: number): Promise<boolean> {
    return this.#ask('extend', { lease: named(lease), leaseMs });
  }

  complete(lease: Lease): Promise<boolean> {
    return this.#waking('complete', { lease: named(lease) });
  }

  fail(lease: Lease, failure: { error: string; retryInMs: number | null }): Promise<boolean> {
    const { error, retryInMs } = failure;
    return this.#waking('fail', { lease: named(lease), error, retryInMs });
  }

  release(lease: Lease, dueInMs = 0): Promise<boolean> {
    return this.#waking('release', { lease: named(lease), dueInMs });
  }

  async commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R | Promise<R>): Promise<R> {
    this.#check();
    // A promise is refused before it gets here.
    const result = (await this.#committer.commit(lease, work)) as R;
    this.#wake();
    return result;
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const next = await this.#ask('nextDue', { handlers });
    return next === null ? null : next - this.runtime.now();
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
    return toStats(await this.#ask('stats', {}));
  }

  async record(counts: ActivityCounts): Promise<void> {
    await this.#ask('record', { counts });
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    const now = this.runtime.now();
    return toActivity(await this.#ask('activity', { minutes }), now, minutes);
  }

  redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    const { force, dueInMs } = options;
    return this.#waking('redrive', { selections, force, dueInMs });
  }

  skip(selections: readonly DeliverySelection[]): Promise<number> {
    return this.#ask('skip', { selections });
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    await this.#ask('pause', { handler, paused });
    if (!paused) this.#wake();
  }

  async prune({ bodiesMs, tombstonesMs, limit }: PruneRequest): Promise<number> {
    let touched = 0;
    while (touched < limit) {
      const slice = Math.min(PRUNE_SLICE, limit - touched);
      const pruned = await this.#ask('prune', { bodiesMs, tombstonesMs, limit: slice });
      touched += pruned;
      if (pruned < slice) break;
    }
    return touched;
  }

  async #ask<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
  ): Promise<AnswerOf<Name>> {
    this.#check();
    return this.#client.call(name, request, this.runtime.now());
  }

  /** For what may make a delivery due: its own, or the next of its ordering key. */
  async #waking<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
  ): Promise<AnswerOf<Name>> {
    const answer = await this.#ask(name, request);
    if (answer !== false && answer !== 0) this.#wake();
    return answer;
  }

  #check(): void {
    if (this.#stage === 'new') throw unavailable('is not open yet.');
    if (this.#stage === 'closed') throw unavailable('is closed.');
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }
}

/** The lease alone, of what may be a whole delivery with its body. */
function named({ company, id, handler, token }: Lease): Lease {
  return { company, id, handler, token };
}
