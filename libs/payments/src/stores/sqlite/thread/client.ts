import { Worker } from 'node:worker_threads';
import type { PaymentsError } from '../../../errors/payments-error.js';
import { toError, unavailable } from './connection.js';
import type { EngineHooks } from '../sqlite-engine.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { Call, FromThread, Opened, Outcome, ThreadData, ToThread } from './messages.js';
import { adopt } from './sent-values.js';
import { findThreadFile } from './find-thread-file.js';

/** Milliseconds from an unexpected end of the thread to the start of another, if the store has listeners. */
const RESTART_MS = 1000;

/** Number of a checkpoint. The calls of a message have numbers from 1. */
const CHECKPOINT = 0;

/** Calls of one message, or a checkpoint, without a response. */
interface Waiting {
  readonly resolve: (outcomes: readonly Outcome[]) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Sends calls to the thread: starts it, starts another thread after an unexpected end, and ends every call within a bounded
 * time.
 */
export class SqliteClient {
  /** Two waits for a lock, because a batch may run twice, and 5 s for the work. */
  readonly #timeoutMs: number;
  readonly #waiting = new Map<number, Waiting>();
  /** The messages that timed out. The thread still has them. */
  readonly #late = new Set<number>();
  /** How many threads have ended unexpectedly. */
  unexpectedEnds = 0;
  #worker: Worker | undefined;
  /** The file that the thread runs; {@link open} sets it. */
  #file: string | undefined;
  #opening: PromiseWithResolvers<Opened> | undefined;
  #ready: Promise<unknown> = Promise.resolve();
  #number = 0;
  #listening = false;
  #closed: Promise<void> | undefined;

  constructor(
    private readonly settings: SqliteSettings,
    private readonly hooks: EngineHooks,
  ) {
    this.#timeoutMs = 2 * settings.busyTimeoutMs + 5000;
  }

  /** Resolves when the thread makes no checkpoint, so that it does not use the file if it has no call. */
  get ready(): Promise<unknown> {
    return this.#ready;
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
   * @throws PaymentsError `inbox_unavailable` if the thread ended, or did not respond in time: then the calls may take effect
   *   later. TypeError if an argument is no plain data.
   */
  async run(calls: readonly Call[]): Promise<readonly Outcome[]> {
    if (this.#closed !== undefined) throw unavailable('is closed.');
    if (this.#late.size > 0) {
      throw unavailable('does not respond, and accepts no operation for now: its disk is slow.');
    }
    this.#start();
    if (this.#waiting.size === 0) this.#worker?.ref();
    const number = (this.#number += 1);
    const done = this.#done(number);
    try {
      this.#post({ kind: 'run', number, calls, times: this.hooks.times() });
    } catch (error) {
      const message = 'The SQLite inbox received a value that is no plain data.';
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

  /** Starts or stops the checks for writes of other processes. */
  listen(on: boolean): void {
    this.#listening = on;
    this.#post({ kind: 'listen', on });
  }

  /** Runs the calls that were made before, and ends the thread. Later calls reject. */
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
      // Without the application's own loaders. The main thread has printed the ExperimentalWarning already.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    this.#opening = Promise.withResolvers();
    // Without `open`, nobody handles this rejection.
    this.#opening.promise.catch(() => {});
    let reason = unavailable('lost its thread, which ended unexpectedly; another one is started.');
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'failed') reason = toError(message.failure);
      else this.#take(message);
    });
    worker.on('error', (error) => {
      reason = unavailable(`lost its thread, to: ${error.message}. Another one is started.`);
    });
    worker.on('exit', () => this.#ended(worker, reason));
    if (this.#listening) this.#post({ kind: 'listen', on: true });
  }

  #take(message: Exclude<FromThread, { kind: 'failed' }>): void {
    if (message.kind === 'opened') {
      this.#opening?.resolve(message);
      this.#unrefIdle();
    } else if (message.kind === 'changed') {
      this.hooks.onWake();
    } else if (message.kind === 'ready') {
      this.#ready = Promise.resolve();
      this.#late.delete(CHECKPOINT);
      this.#end(CHECKPOINT)?.resolve([]);
    } else {
      if (message.checkpoint) {
        this.#ready = this.#done(CHECKPOINT);
        // Perhaps nobody waits for it.
        this.#ready.catch(() => {});
      }
      if (message.ahead !== null) this.hooks.onClock(message.ahead);
      this.#late.delete(message.number);
      this.#end(message.number)?.resolve(adopt(message.outcomes));
      if (message.wakes) this.hooks.onWake();
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
        `did not respond within ${this.#timeoutMs} ms: its disk is slow or the file is locked. ` +
          'The operation may take effect later.',
      ),
    );
  }

  /** Lets the process exit while the thread is idle; while the client closes, the process waits for the thread. */
  #unrefIdle(): void {
    if (this.#waiting.size === 0 && this.#closed === undefined) this.#worker?.unref();
  }

  /** The next call starts another thread. */
  #ended(worker: Worker, reason: PaymentsError): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.unexpectedEnds += 1;
    this.#opening?.reject(reason);
    this.#late.clear();
    for (const number of this.#waiting.keys()) this.#end(number)?.reject(reason);
    this.#ready = Promise.resolve();
    if (this.#listening) setTimeout(() => this.#restart(), RESTART_MS).unref();
  }

  #restart(): void {
    try {
      this.#start();
    } catch {
      // Node throws, for example, if the system allows the process no further thread. In this timer, the error would end the
      // process. The next call, at the latest that of a heartbeat, tries again and reports the error.
    }
  }
}
