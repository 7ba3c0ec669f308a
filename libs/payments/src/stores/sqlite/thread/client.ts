import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { optionsInvalid } from '../../../errors/option-checks.js';
import { toError, unavailable } from './connection.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { StoreClock } from '../store-clock.js';
import { adopt } from './messages.js';
import type { Call, FromThread, Opened, Outcome, ThreadData, ToThread } from './messages.js';

/**
 * The milliseconds from an unexpected end of the thread to the start of another thread. Without a thread, the store
 * would not notice the writes of other processes.
 */
const RESTART_MS = 1000;

/** The message number that means a checkpoint. Messages with calls have numbers from 1. */
const CHECKPOINT = 0;

/** The calls of one message, or a checkpoint, that have no response yet. */
interface Waiting {
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Sends calls to the thread. Restarts the thread if it ends unexpectedly. Every call resolves or rejects within a
 * bounded time.
 */
export class SqliteClient {
  /**
   * The time limit of a message in milliseconds: two waits for a lock, because a batch may run twice, and 5 s for the
   * work.
   */
  readonly #timeoutMs: number;
  readonly #waiting = new Map<number, Waiting>();
  /** The numbers of the messages that timed out. The thread has not responded to them yet. */
  readonly #late = new Set<number>();
  unexpectedEnds = 0;
  /** Resolves when the thread is not making a checkpoint, so that it uses the file only for calls. */
  ready: Promise<unknown> = Promise.resolve();
  #worker: Worker | undefined;
  #file: string | undefined;
  #opening: PromiseWithResolvers<Opened> | undefined;
  #number = 0;
  #opened = false;
  #closed: Promise<void> | undefined;

  constructor(
    private readonly settings: SqliteSettings,
    private readonly clock: StoreClock,
    /** Called when a delivery or a poll may have become due. */
    private readonly onWake: () => void,
  ) {
    this.#timeoutMs = 2 * settings.busyTimeoutMs + 5000;
  }

  /**
   * Starts the thread; resolves when the thread has opened the file.
   *
   * @throws PaymentsError `options_invalid` if the thread's file is missing; `inbox_unavailable` if the thread cannot
   *   use the database.
   */
  async open(): Promise<Opened> {
    this.#file = await findThreadFile(this.settings.threadPath);
    if (this.#closed !== undefined) throw unavailable('is closed.');
    this.#start();
    const late = setTimeout(() => void this.#worker?.terminate(), this.#timeoutMs).unref();
    return this.#opening!.promise.finally(() => clearTimeout(late));
  }

  /**
   * Runs one read, or several writes in one transaction.
   *
   * @throws PaymentsError `inbox_unavailable` if the thread ended or did not respond in time. Without a response, the
   *   calls may take effect later. TypeError if an argument is not plain data.
   */
  async run(calls: readonly Call[]): Promise<readonly Outcome[]> {
    if (this.#closed !== undefined) throw unavailable('is closed.');
    if (this.#late.size > 0) {
      throw unavailable(
        'does not respond and accepts no operation for now, because its disk is slow.',
      );
    }
    this.#start();
    if (this.#waiting.size === 0) this.#worker?.ref();
    const number = (this.#number += 1);
    const done = this.#done(number);
    try {
      this.#post({ kind: 'run', number, calls, times: this.clock.read() });
    } catch (error) {
      const message = 'The SQLite inbox received a value that is not plain data.';
      this.#end(number)?.reject(new TypeError(message, { cause: error }));
    }
    return done;
  }

  #done(number: number): Promise<readonly Outcome[]> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.#timedOut(number), this.#timeoutMs).unref();
      this.#waiting.set(number, { resolve, reject, timer });
    });
  }

  /** Waits for the calls that were made before this call, and ends the thread. Later calls reject. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close());
  }

  async #close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    worker.ref();
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    const late = setTimeout(() => void worker.terminate(), this.#timeoutMs);
    this.#post({ kind: 'close' });
    await exited;
    clearTimeout(late);
  }

  #post(message: ToThread): void {
    this.#worker?.postMessage(message);
  }

  #start(): void {
    if (this.#worker !== undefined || this.#closed !== undefined) return;
    const worker = new Worker(this.#file!, {
      name: 'payments-inbox',
      workerData: { sqliteInboxThread: this.settings } satisfies ThreadData,
      // The thread runs without the application's own loaders. The main thread has already printed the
      // ExperimentalWarning.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    this.#opening = Promise.withResolvers();
    // Without a call of `open`, no other code handles this rejection.
    this.#opening.promise.catch(() => {});
    let reason: Error = unavailable(
      'lost its thread, which ended unexpectedly. It starts another thread.',
    );
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'failed') reason = toError(message.failure);
      else this.#take(message);
    });
    worker.on('error', (error) => {
      reason = unavailable(
        `lost its thread after an error: ${error.message}. It starts another thread.`,
      );
    });
    worker.on('exit', () => this.#ended(worker, reason));
  }

  #take(message: Exclude<FromThread, { kind: 'failed' }>): void {
    if (message.kind === 'opened') {
      this.#opened = true;
      this.#opening?.resolve(message);
      this.#unrefIdle();
    } else if (message.kind === 'changed') {
      this.onWake();
    } else if (message.kind === 'ready') {
      this.ready = Promise.resolve();
      this.#late.delete(CHECKPOINT);
      this.#end(CHECKPOINT)?.resolve([]);
    } else {
      if (message.checkpoint) {
        this.ready = this.#done(CHECKPOINT);
        // Prevents an unhandled rejection if no caller awaits it.
        this.ready.catch(() => {});
      }
      if (message.ahead !== null) this.clock.advanceTo(message.ahead);
      this.#late.delete(message.number);
      this.#end(message.number)?.resolve(adopt(message.outcomes));
      if (message.wakes) this.onWake();
    }
  }

  #end(number: number): Waiting | undefined {
    const waiting = this.#waiting.get(number);
    clearTimeout(waiting?.timer);
    this.#waiting.delete(number);
    this.#unrefIdle();
    return waiting;
  }

  #timedOut(number: number): void {
    this.#late.add(number);
    this.#end(number)?.reject(
      unavailable(
        `did not respond within ${this.#timeoutMs} ms, because its disk is slow or the file is locked. ` +
          'The operation may take effect later.',
      ),
    );
  }

  /** Lets the process exit while the thread is idle; while the client closes, the process waits for the thread. */
  #unrefIdle(): void {
    if (this.#waiting.size === 0 && this.#closed === undefined) this.#worker?.unref();
  }

  /** Rejects the calls of a thread that has ended. The next call starts another thread. */
  #ended(worker: Worker, reason: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.unexpectedEnds += 1;
    this.#opening?.reject(reason);
    this.#late.clear();
    for (const number of this.#waiting.keys()) this.#end(number)?.reject(reason);
    this.ready = Promise.resolve();
    if (this.#opened) setTimeout(() => this.#restart(), RESTART_MS).unref();
  }

  #restart(): void {
    try {
      this.#start();
    } catch {
      // Node throws, for example, if the system allows the process no further thread. The error is ignored, because an
      // error in a timer would make the process exit. The next call (at the latest the next heartbeat) tries again and
      // reports the error.
    }
  }
}

/** The file name of the compiled entry of the thread. */
const ENTRY = 'sqlite-thread.js';

const FIX =
  'Bundle "nestjs-payments/sqlite/thread" as a second entry and pass the path of its output as ' +
  '"sqliteInbox.threadPath", or exclude nestjs-payments from the bundle.';

/** @throws PaymentsError `options_invalid` if the file does not exist, or a bundler merged it into another file. */
export async function findThreadFile(threadPath: string | undefined): Promise<string> {
  const path = threadPath ?? (await ownEntry());
  if (existsSync(path)) return path;
  throw optionsInvalid(
    `the file of the worker thread of the SQLite inbox does not exist: ${path}. ${FIX}`,
  );
}

/** Defined only if a test runner or a bundler has compiled this file to CommonJS. */
declare const __filename: string | undefined;

async function ownEntry(): Promise<string> {
  // Jest in CommonJS cannot import the entry, because the entry is an ES module; but the entry is next to this file.
  const neighbor = typeof __filename === 'string' ? join(dirname(__filename), ENTRY) : undefined;
  if (neighbor !== undefined && existsSync(neighbor)) return neighbor;
  const { threadUrl } = await import('./sqlite-thread.js');
  return entryPath(threadUrl);
}

/** @throws PaymentsError `options_invalid` if a bundler merged the entry into another file. */
export function entryPath(url: string | undefined): string {
  const path = url === undefined ? undefined : fileURLToPath(url);
  if (path !== undefined && basename(path) === ENTRY) return path;
  throw optionsInvalid(
    `a bundler merged the worker thread of the SQLite inbox into ${path === undefined ? 'another file' : basename(path)}. ${FIX}`,
  );
}
