import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { createTables } from '../sql/schema.js';
import { loadDriver, toError, toFailure } from './connection.js';
import type { SqliteConnection } from './connection.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { SqliteSql } from './sqlite-sql.js';
import { ruleOf, runAtLatestClock, runOutside, takeBatch } from './batch.js';
import {
  createPrivateFile,
  openWriter,
  rejectOldSqlite,
  sqliteVersion,
  storedClock,
  WriteAheadLog,
} from './database-file.js';
import type { Call, CallResponse, FromThread, ThreadData, ToThread } from './messages.js';

// The entry of the worker thread that has the database: the thread waits for the disk, so the event loop does not.
// The main thread imports this file too, but only to read `threadUrl`, and an application may itself run in a worker.
// So the file opens the database only in a worker that SqliteClient started.

/**
 * URL of this file, or of the bundle that a bundler merged it into. `undefined` in a bundle whose format has no
 * `import.meta`.
 */
export const threadUrl: string | undefined = import.meta.url;

/** How long a window lasts at most, in milliseconds: an event loop that hangs does not stop the inbox. */
const WINDOW_MS = 200;

/** Milliseconds between two checks whether another process wrote to the file. */
const WAKE_POLL_MS = 250;

/** A call, or one transaction of a call, which takes the response itself. */
interface QueuedCall extends Call {
  readonly take?: (response: CallResponse) => void;
}

/**
 * Runs the calls of the store. Writes wait in a queue and run in batches, reads run at once. A window is a time in
 * which the thread does not use the file, so that the event loop can commit without waiting for a lock.
 */
export class SqliteServer {
  #queue: QueuedCall[] = [];
  /** Calls that request a window. */
  #windows: Call[] = [];
  /** The timer of the next batch. Set while a batch is scheduled. */
  #scheduled: NodeJS.Immediate | undefined;
  /** The time limit of the open window. Set while a window is open. */
  #window: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** Whether the last step was a window: then a batch runs before the next window. */
  #windowWasLast = false;
  /** SQLite's `data_version` at the last check for writes of other processes. start() reads the first one. */
  #dataVersion = 0;

  constructor(
    private readonly port: MessagePort,
    private readonly connection: SqliteConnection,
    private readonly log: WriteAheadLog,
    private readonly busyTimeoutMs: number,
  ) {}

  start(): void {
    this.#dataVersion = this.#readDataVersion();
    this.port.on('message', (message: ToThread) => {
      this.#take(message);
      this.#schedule();
    });
  }

  #take(message: ToThread): void {
    switch (message.kind) {
      case 'calls':
        for (const call of message.calls) this.#takeCall(call);
        break;
      case 'windowClosed':
        this.#closeWindow();
        break;
      case 'listen':
        this.#listen(message.on);
        break;
      case 'close':
        void this.#close();
        break;
    }
  }

  #takeCall(call: Call): void {
    if (call.name === 'window') this.#windows.push(call);
    else if (['read', 'sliced'].includes(ruleOf(call))) void this.#runOutside(call);
    else this.#queue.push(call);
  }

  async #runOutside(call: Call): Promise<void> {
    const response = await runOutside(this.connection, call, this.busyTimeoutMs, (work) =>
      this.#transaction(call, work),
    );
    this.#respond([response]);
  }

  /** Runs one transaction of a call in the next batch. */
  #transaction<T>(call: Call, work: (sql: SqliteSql) => T | Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const take = (response: CallResponse): void => {
        if ('failure' in response) reject(toError(response.failure));
        else resolve(response.value as T);
      };
      this.#queue.push({ ...call, name: 'transaction', args: [work], take });
      this.#schedule();
    });
  }

  /** Opens a window now, or schedules a batch. If both wait, windows and batches take turns. */
  #schedule(): void {
    if (this.#window !== undefined || this.#scheduled !== undefined) return;
    const batchWaits = this.#queue.length > 0;
    if (this.#windows.length > 0 && !(this.#windowWasLast && batchWaits)) this.#openWindow();
    else if (batchWaits) this.#scheduled = setImmediate(() => void this.#run());
  }

  async #run(): Promise<void> {
    this.#scheduled = undefined;
    this.#windowWasLast = false;
    await this.#write(this.busyTimeoutMs);
    // The next batch takes the calls that arrived during the commit.
    for (let next = receiveMessageOnPort(this.port); next; next = receiveMessageOnPort(this.port)) {
      this.#take(next.message as ToThread);
    }
    this.log.keepShort(this.#queue.length > 0);
    this.#schedule();
  }

  async #write(busyTimeoutMs: number): Promise<void> {
    const batch = takeBatch(this.#queue);
    const { responses, ahead } = await runAtLatestClock(this.connection, batch, busyTimeoutMs);
    if (ahead !== null) this.#send({ kind: 'clock', clock: ahead });
    this.#respond(responses.filter((_response, index) => batch[index]!.take === undefined));
    for (const [index, { take }] of batch.entries()) take?.(responses[index]!);
  }

  #openWindow(): void {
    this.#windowWasLast = true;
    const responses = this.#windows
      .splice(0)
      .map(({ number }) => ({ number, value: null, wakes: false }));
    this.#window = setTimeout(() => {
      this.#closeWindow();
      this.#schedule();
    }, WINDOW_MS);
    this.#respond(responses);
  }

  #closeWindow(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
  }

  #listen(on: boolean): void {
    clearInterval(this.#poll);
    if (!on) return;
    this.#poll = setInterval(() => {
      const version = this.#readDataVersion();
      if (version !== this.#dataVersion) this.#send({ kind: 'changed' });
      this.#dataVersion = version;
    }, WAKE_POLL_MS);
  }

  /** Changes when another connection commits (https://www.sqlite.org/pragma.html#pragma_data_version). */
  #readDataVersion(): number {
    try {
      return this.connection.get<{ data_version: number }>('PRAGMA data_version')!.data_version;
    } catch {
      return this.#dataVersion;
    }
  }

  /** Runs all queued calls first. Together they wait for a lock at most as long as one batch. */
  async #close(): Promise<void> {
    clearImmediate(this.#scheduled);
    clearInterval(this.#poll);
    this.#closeWindow();
    const end = performance.now() + this.busyTimeoutMs;
    while (this.#queue.length > 0) await this.#write(end - performance.now());
    this.log.empty();
    this.connection.close();
    this.#send({ kind: 'closed' });
    this.port.close();
  }

  #respond(responses: readonly CallResponse[]): void {
    if (responses.length > 0) this.#send({ kind: 'responses', responses });
  }

  #send(message: FromThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    this.port.postMessage(message);
  }
}

const { sqliteInboxThread } = (workerData ?? {}) as Partial<ThreadData>;
// The promise is not awaited here: `require()` does not load a module that has a top-level `await`.
if (parentPort !== null && sqliteInboxThread !== undefined) {
  void serve(parentPort, sqliteInboxThread);
}

async function serve(port: MessagePort, settings: SqliteSettings): Promise<void> {
  const send = (message: FromThread): void => port.postMessage(message);
  try {
    const driver = await loadDriver();
    // An old SQLite must be rejected before the file is created.
    const version = sqliteVersion(driver);
    if (!settings.allowOldSqlite) rejectOldSqlite(version);
    createPrivateFile(settings.file);
    const connection = openWriter(driver, settings.file, settings.busyTimeoutMs);
    createTables(connection, settings.busyTimeoutMs);
    const clock = storedClock(connection);
    new SqliteServer(
      port,
      connection,
      new WriteAheadLog(connection),
      settings.busyTimeoutMs,
    ).start();
    send({ kind: 'opened', sqliteVersion: version, clock });
  } catch (error) {
    send({ kind: 'failed', failure: toFailure(error) });
  }
}
