import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import { resolveSqliteOptions } from '../../../libs/payments/dist/stores/sqlite/sqlite-options.js';
import type { SqliteSettings } from '../../../libs/payments/dist/stores/sqlite/sqlite-options.js';
import { SqliteStore } from '../../../libs/payments/dist/stores/sqlite/sqlite-store.js';
import { RunningProcess } from '../processes/running-process.ts';
import { changedThread } from './changed-thread.ts';
import type { ChangedSqlite } from './changed-thread.ts';
import { TestWorker } from '../../store-contract/contract-fixtures.ts';
import type { ClaimedDelivery } from '../../../libs/payments/dist/inbox/store/inbox-store.js';

export { incoming, TestWorker } from '../../store-contract/contract-fixtures.ts';

/**
 * The wall clock of every store: the monotonic clock plus a whole number. The wall clock of the machine may be set, or
 * may tick at another fraction of a millisecond. Then the clocks of two stores of one file could differ by a
 * millisecond or more.
 */
const STARTED_AT = Math.floor(Date.now() - performance.now());

/** SQLite stores on one new file with one clock, and the application's own connections to the file. */
export class SqliteHarness {
  readonly folder = mkdtempSync(join(tmpdir(), 'payments-inbox-'));
  readonly file = join(this.folder, 'inbox.db');
  readonly #stores: SqliteStore[] = [];
  readonly #connections: DatabaseSync[] = [];
  #aheadMs = 0;
  #wallJumpMs = 0;

  /** Advances both clocks of every store of this harness. */
  advance(ms: number): void {
    this.#aheadMs += ms;
  }

  /** Moves only the wall clock of every store. */
  jumpWallClock(ms: number): void {
    this.#wallJumpMs += ms;
  }

  /** A store that is not opened. Its process's wall clock is `clockOffsetMs` ahead. */
  store(settings: Partial<SqliteSettings> = {}, clockOffsetMs = 0): SqliteStore {
    const store = new SqliteStore(
      // The oldest supported Node has an old SQLite.
      { ...resolveSqliteOptions({ file: this.file, allowOldSqlite: true }), ...settings },
      {
        ...systemRuntime,
        now: () =>
          STARTED_AT + performance.now() + this.#aheadMs + this.#wallJumpMs + clockOffsetMs,
        monotonic: () => performance.now() + this.#aheadMs,
      },
    );
    this.#stores.push(store);
    return store;
  }

  /** A thread whose SQLite is slow or old, for the option `threadPath`. */
  thread(sqlite: ChangedSqlite): string {
    return changedThread(this.folder, sqlite);
  }

  async open(settings: Partial<SqliteSettings> = {}, clockOffsetMs = 0): Promise<SqliteStore> {
    const store = this.store(settings, clockOffsetMs);
    await store.open();
    return store;
  }

  /** Opens a connection of the application. */
  connect(): DatabaseSync {
    const connection = new DatabaseSync(this.file);
    connection.exec('PRAGMA busy_timeout = 5000');
    this.#connections.push(connection);
    return connection;
  }

  /** Registers a worker at a store. Returns a function that claims deliveries of the handler `book`. */
  async claimer(store: SqliteStore): Promise<(limit: number) => Promise<ClaimedDelivery[]>> {
    const worker = await TestWorker.start(store);
    return (limit) => worker.claim(['book'], limit);
  }

  async dispose(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await Promise.all(this.#stores.map((store) => store.close()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Starts `sqlite-child.mjs` in a role. */
export function startChild(
  role: string,
  file: string,
  flags: readonly string[] = [],
): RunningProcess {
  const program = join(import.meta.dirname, 'sqlite-child.mjs');
  return new RunningProcess(process.execPath, [...flags, program, role, file]);
}

/** Waits until a child has printed so many lines, kills it, and returns its lines. */
export async function killedAfter(child: RunningProcess, lines: number): Promise<string[]> {
  await child.until(() => child.out.length >= lines);
  await child.kill();
  return child.out;
}
