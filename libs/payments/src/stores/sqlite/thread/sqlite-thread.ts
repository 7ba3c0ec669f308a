import { parentPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { migrate } from '../migrate.js';
import { loadDriver, toFailure } from './connection.js';
import type { SqliteConnection } from './connection.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { isWrite, runBatch, runRead, Turns } from './batch.js';
import {
  createPrivateFile,
  emptyLog,
  isLogLong,
  oldSqliteWarning,
  openWriter,
  sharedFilesWarning,
  shortenLog,
  sqliteVersion,
  storedClock,
} from './database-file.js';
import type { FromThread, ThreadData, ToThread } from './messages.js';

// This file is the entry of the worker thread that uses the database. The thread waits for the disk, so that the event
// loop does not. The main thread imports this file too, but only to read `threadUrl`, and an application may itself run
// in a worker. Therefore, the file opens the database only in a worker that SqliteClient started.

/**
 * URL of this file, or of the bundle that a bundler merged it into. `undefined` in a bundle whose format has no
 * `import.meta`.
 */
export const threadUrl: string | undefined = import.meta.url;

/** The milliseconds between two checks for writes of other processes to the file. */
const WAKE_POLL_MS = 250;

/** Runs the calls of the store. The writes of one message run in one transaction, and a read runs immediately. */
export class SqliteServer {
  readonly #turns = new Turns();
  readonly #poll: NodeJS.Timeout;
  /** SQLite's `data_version` at the last check for writes of other processes. */
  #dataVersion: number;

  constructor(
    private readonly port: MessagePort,
    private readonly connection: SqliteConnection,
    private readonly busyTimeoutMs: number,
  ) {
    this.#dataVersion = this.#readDataVersion();
    port.on('message', (message: ToThread) => void this.#take(message));
    this.#poll = setInterval(() => {
      const version = this.#readDataVersion();
      if (version !== this.#dataVersion) this.#send({ kind: 'changed' });
      this.#dataVersion = version;
    }, WAKE_POLL_MS).unref();
  }

  async #take(message: ToThread): Promise<void> {
    if (message.kind === 'close') await this.#turns.take(() => this.#close());
    else await this.#run(message);
  }

  async #run({ number, calls, times }: ToThread & { readonly kind: 'run' }): Promise<void> {
    const { connection, busyTimeoutMs } = this;
    const isBatch = isWrite(calls[0]!.name);
    const result = await (isBatch
      ? this.#turns.take(() => runBatch(connection, calls, times, busyTimeoutMs))
      : runRead(connection, calls[0]!, times, busyTimeoutMs));
    const checkpoint = isBatch && isLogLong(connection, calls.length > 1);
    this.#send({ kind: 'done', number, ...result, checkpoint });
    if (!checkpoint) return;
    await this.#turns.take(() => shortenLog(connection));
    this.#send({ kind: 'ready' });
  }

  /** Changes when another connection commits (https://www.sqlite.org/pragma.html#pragma_data_version). */
  #readDataVersion(): number {
    try {
      return this.connection.get<{ data_version: number }>('PRAGMA data_version')!.data_version;
    } catch {
      return this.#dataVersion;
    }
  }

  #close(): void {
    clearInterval(this.#poll);
    emptyLog(this.connection);
    this.connection.close();
    this.port.close();
  }

  #send(message: FromThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    this.port.postMessage(message);
  }
}

const { sqliteInboxThread } = (workerData ?? {}) as Partial<ThreadData>;
// The promise is not awaited here, because `require()` does not load a module that has a top-level `await`.
if (parentPort !== null && sqliteInboxThread !== undefined) {
  void serve(parentPort, sqliteInboxThread);
}

async function serve(port: MessagePort, settings: SqliteSettings): Promise<void> {
  const { file, allowOldSqlite, busyTimeoutMs } = settings;
  const send = (message: FromThread): void => port.postMessage(message);
  try {
    const driver = await loadDriver();
    // An old SQLite must be rejected before the file is created.
    const oldSqlite = oldSqliteWarning(sqliteVersion(driver), allowOldSqlite);
    createPrivateFile(file);
    const connection = openWriter(driver, file, busyTimeoutMs);
    migrate(connection, busyTimeoutMs);
    const clock = storedClock(connection);
    const warnings = [...oldSqlite, ...sharedFilesWarning(file)];
    // The server keeps the thread alive, so every step that can fail runs before the server starts.
    void new SqliteServer(port, connection, busyTimeoutMs);
    send({ kind: 'opened', warnings, clock });
  } catch (error) {
    send({ kind: 'failed', failure: toFailure(error) });
  }
}
