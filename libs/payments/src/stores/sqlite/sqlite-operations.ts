import type {
  ClaimedDelivery,
  ClaimRequest,
  HandlerCatalog,
  HeartbeatResult,
  InboxStore,
  IncomingEvent,
  SettleResult,
  SuspectRequest,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';
import { catalog, forgetHandler, pause } from './sql/catalog.js';
import { claim, claimSuspect, nextDue } from './sql/claim.js';
import { ExpectationOperations } from './sql/expectations.js';
import { newerHandled } from './sql/ordering.js';
import { prune } from './sql/prune.js';
import type { Pruned, PruneRequest } from './sql/prune.js';
import { receive } from './sql/receive.js';
import type { Receipt } from './sql/receive.js';
import { redrive } from './sql/redrive.js';
import { complete, fail, release, skip } from './sql/settle.js';
import type { LeaseName } from './sql/settle.js';
import { LAYOUT } from './sql/schema.js';
import { heartbeat, register, retire } from './sql/workers.js';
import { SqlEvents } from '../sql/events.js';
import type { SqliteConnection, Times } from './thread/connection.js';
import { pause as pauseRead, SqliteSql } from './thread/sqlite-sql.js';
import { sync } from './thread/database-file.js';

/**
 * The methods of an `InboxStore` on a connection, for one call at the time of the process that made it. A method may return
 * its result at once. The thread runs it and sends the result, which structured clone copies.
 *
 * A method that reads or writes many rows does so in slices, with other operations between them: the store calls the
 * `…Slice` methods again and again, and lists pause.
 */
export class SqliteOperations {
  /** Whether a delivery or a poll may have become due. */
  wakes = false;

  constructor(
    private readonly connection: SqliteConnection,
    private readonly times: Times,
  ) {}

  get expectations(): ExpectationOperations {
    return new ExpectationOperations(this.connection, this.times, () => {
      this.wakes = true;
    });
  }

  get events(): SqlEvents {
    return new SqlEvents(new SqliteSql(this.connection, this.times), LAYOUT, pauseRead);
  }

  register(worker: WorkerRegistration): HandlerCatalog {
    return register(this.connection, worker, this.times);
  }

  heartbeat(worker: string): HeartbeatResult {
    const { freed, ...result } = heartbeat(this.connection, { worker }, this.times);
    this.wakes = freed > 0;
    return result;
  }

  retire(worker: string, graceMs: number): void {
    retire(this.connection, { worker, graceMs }, this.times);
  }

  catalog(): HandlerCatalog {
    return catalog(this.connection);
  }

  forgetSlice(handler: string): number | null {
    return forgetHandler(this.connection, { handler }, this.times);
  }

  receive(events: readonly IncomingEvent[]): Receipt[] {
    const receipts = receive(this.connection, events, this.times);
    this.wakes = receipts.some(({ pending }) => pending);
    return receipts;
  }

  claim(request: ClaimRequest): ClaimedDelivery[] {
    return claim(this.connection, request, this.times);
  }

  claimSuspect(request: SuspectRequest): ClaimedDelivery | null {
    return claimSuspect(this.connection, request, this.times);
  }

  newerHandled(lease: LeaseName): boolean {
    return newerHandled(this.connection, { lease });
  }

  complete(lease: LeaseName): SettleResult {
    return this.#settled(complete(this.connection, { lease }, this.times));
  }

  fail(lease: LeaseName, failure: Parameters<InboxStore['fail']>[1]): SettleResult {
    const result = fail(this.connection, { lease, ...failure }, this.times);
    return this.#settled(result, failure.retryInMs !== null);
  }

  release(lease: LeaseName, dueInMs = 0): SettleResult {
    return this.#settled(release(this.connection, { lease, dueInMs }, this.times), true);
  }

  /** A delivery may be due after it: the next of its key, or itself if it is `pending` again. */
  #settled(result: SettleResult, pending = false): SettleResult {
    this.wakes = result.nextDue || (result.settled && pending);
    return result;
  }

  nextDueInMs(handlers: readonly string[]): number | null {
    return nextDue(this.connection, { handlers }, this.times);
  }

  redrive(
    selections: Parameters<InboxStore['redrive']>[0],
    options: Parameters<InboxStore['redrive']>[1],
  ): number {
    const changed = redrive(this.connection, { selections, ...options }, this.times);
    this.wakes = changed > 0;
    return changed;
  }

  skip(selections: Parameters<InboxStore['skip']>[0]): number {
    const skipped = skip(this.connection, { selections }, this.times);
    this.wakes = skipped > 0;
    return skipped;
  }

  pause(handler: string, paused: boolean): void {
    pause(this.connection, { handler, paused });
    this.wakes = !paused;
  }

  pruneSlice(request: PruneRequest): Pruned {
    return prune(this.connection, request, this.times);
  }

  /** Stores the clock. The commit of this write makes every earlier commit durable. */
  sync(): void {
    sync(this.connection, this.times);
  }
}

type MethodsOf<Class> = {
  [Name in keyof Class]: Class[Name] extends (...args: never[]) => unknown ? Name : never;
}[keyof Class] &
  string;

/** The parts of {@link SqliteOperations} that have methods of their own. */
type Parts = Pick<SqliteOperations, 'events' | 'expectations'>;

/** The name of a method of {@link SqliteOperations}, or of one of its parts: `events.list`. */
export type OperationName =
  | MethodsOf<SqliteOperations>
  | { [Part in keyof Parts]: `${Part}.${MethodsOf<Parts[Part]>}` }[keyof Parts];

type Operation<Name extends OperationName> = Name extends keyof SqliteOperations
  ? SqliteOperations[Name]
  : Name extends `${infer Part extends keyof Parts}.${infer Method}`
    ? Method extends keyof Parts[Part]
      ? Parts[Part][Method]
      : never
    : never;

export type ArgumentsOf<Name extends OperationName> =
  Operation<Name> extends (...args: infer Arguments) => unknown ? Arguments : never;

export type ResultOf<Name extends OperationName> =
  Operation<Name> extends (...args: never[]) => infer Result ? Awaited<Result> : never;

/**
 * How each operation runs:
 *
 * - `read`: at once, because it does not need the lock of the writer.
 * - `write`: in a transaction with other writes that arrived together. It may change what the connection caches.
 * - `write cached`: the same, for a write that changes nothing that the connection caches.
 */
export const RULES: Readonly<Record<OperationName, 'read' | 'write' | 'write cached'>> = {
  catalog: 'read',
  claim: 'write cached',
  claimSuspect: 'write',
  complete: 'write cached',
  fail: 'write cached',
  forgetSlice: 'write',
  heartbeat: 'write',
  newerHandled: 'read',
  nextDueInMs: 'read',
  pause: 'write',
  pruneSlice: 'write',
  receive: 'write cached',
  redrive: 'write',
  register: 'write',
  release: 'write cached',
  retire: 'write',
  skip: 'write',
  sync: 'write',
  'events.activity': 'read',
  'events.failures': 'read',
  'events.find': 'read',
  'events.list': 'read',
  'events.stats': 'read',
  'expectations.attach': 'write cached',
  'expectations.cancel': 'write cached',
  'expectations.claimPolls': 'write',
  'expectations.counts': 'read',
  'expectations.endRequest': 'write',
  'expectations.expect': 'write cached',
  'expectations.find': 'read',
  'expectations.list': 'read',
  'expectations.nextPollInMs': 'read',
  'expectations.pollNow': 'write cached',
  'expectations.releasePolls': 'write',
  'expectations.settlePoll': 'write cached',
  'expectations.startRequest': 'write',
};
