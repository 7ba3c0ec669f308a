import type { CommitResult, Lease } from '../../inbox/store/inbox-store.js';
import type { OperationName } from './sqlite-operations.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import type { StoredClock, Times } from './thread/connection.js';

/** Runs operations and commits on a database. */
export interface SqliteEngine {
  /** Opens the database; returns its clock. */
  open(): Promise<StoredClock>;
  /** Runs an operation of `OPERATIONS`. */
  run(name: OperationName, args: readonly unknown[]): Promise<unknown>;
  /** Runs `work` on the event loop and settles the lease, in one transaction. */
  commit<R>(lease: Lease, work: (tx: SqliteTransaction) => R): Promise<CommitResult<R>>;
  /** Starts or stops the checks for writes of other processes. */
  listen(on: boolean): void;
  /** Ends the operations and commits that were requested before, and closes the database. */
  close(): Promise<void>;
}

/** What an engine uses of its store. */
export interface EngineHooks {
  readonly times: () => Times;
  /** Called when a delivery or a poll may have become due. */
  readonly onWake: () => void;
  /** Called with the clock of another process if it is ahead. */
  readonly onClock: (clock: number) => void;
}
