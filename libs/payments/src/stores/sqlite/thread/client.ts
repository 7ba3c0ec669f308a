import { Worker } from 'node:worker_threads';
import type { PaymentsError } from '../../../errors/payments-error.js';
import { toError, unavailable } from './connection.js';
import type { EngineHooks } from '../sqlite-engine.js';
import type { OperationName } from '../sqlite-operations.js';
import type { SqliteSettings } from '../sqlite-options.js';
import type { Call, CallResponse, FromThread, Opened, ThreadData, ToThread } from './messages.js';
import { OpenCalls } from './open-calls.js';
import { adopt, toSent } from './sent-values.js';
import { findThreadFile } from './thread-file.js';

/** How many receives one message carries at most. */
const MAX_GATHERED = 16;

/** Milliseconds from an unexpected end of the thread to the start of another, if the store has listeners. */
const RESTART_MS = 1000;

/**
 * Calls the thread: starts it, starts another thread after an unexpected end, and ends every call within a bounded
 * time.
 */
export class SqliteClient {
  /** The call's own wait for a lock, the wait of the batch before it, and 5 s for the work of both. */
  readonly #timeoutMs: number;
  readonly #calls: OpenCalls;
  /** Calls that the next message carries. */
  #outbox: Omit<Call, 'times'>[] = [];
  /** How many threads have ended unexpectedly. */
  unexpectedEnds = 0;
  #worker: Worker | undefined;
  /** The file that the thread runs; {@link open} sets it. */
  #file: string | undefined;
  #opening: PromiseWithResolvers<Opened> | undefined;
  #number = 0;
  #listening = false;
  #closed: Promise<void> | undefined;

  constructor(
    private readonly settings: SqliteSettings,
    private readonly hooks: EngineHooks,
  ) {
    this.#timeoutMs = 2 * settings.busyTimeoutMs + 5000;
    this.#calls = new OpenCalls(this.#timeoutMs, () => this.#unrefIdle());
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
   * Runs an operation in the thread.
   *
   * @throws PaymentsError `inbox_unavailable` if the operation failed, or if the thread did not respond in time: then
   *   the operation may take effect later.
   */
  async call(name: OperationName, args: readonly unknown[]): Promise<unknown> {
    return this.#call(name, args.map(toSent));
  }

  /** Resolves when the thread stops using the file: until {@link closeWindow}, but for at most 200 ms. */
  async openWindow(): Promise<void> {
    await this.#call('window', []);
  }

  closeWindow(): void {
    this.#post({ kind: 'windowClosed' });
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
    this.#send();
    worker.ref();
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    const late = setTimeout(() => void worker.terminate(), this.#timeoutMs);
    this.#post({ kind: 'close' });
    await exited;
    clearTimeout(late);
  }

  async #call(name: Call['name'], args: readonly unknown[]): Promise<unknown> {
    if (this.#closed !== undefined) throw unavailable('is closed.');
    this.#calls.checkLimits(name);
    this.#start();
    if (this.#calls.isIdle) this.#worker?.ref();
    const call = { number: (this.#number += 1), name, args };
    this.#outbox.push(call);
    this.#planSend(name);
    return this.#calls.add(call);
  }

  /**
   * Receives arrive one by one, each from its own HTTP connection. The client sends those of one turn of the event loop
   * together, unless there are so many that the thread should begin before the turn ends. It sends other calls at once.
   */
  #planSend(name: Call['name']): void {
    const { length } = this.#outbox;
    if (name !== 'receive' || length === MAX_GATHERED) queueMicrotask(() => this.#send());
    else if (length === 1) setImmediate(() => this.#send());
  }

  #send(): void {
    if (this.#outbox.length === 0) return;
    // All calls share one object, so that `postMessage` copies it once.
    const times = this.hooks.times();
    const calls = this.#outbox.splice(0).map((call) => ({ ...call, times }));
    try {
      this.#post({ kind: 'calls', calls });
    } catch {
      // One call has a value that cannot be sent, for example a function: send the others one by one.
      for (const call of calls) this.#sendAlone(call);
    }
  }

  #sendAlone(call: Call): void {
    try {
      this.#post({ kind: 'calls', calls: [call] });
    } catch (error) {
      const message = 'The SQLite inbox received a value that is no plain data.';
      this.#calls.take(call.number)?.reject(new TypeError(message, { cause: error }));
    }
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
      this.#take(message);
    });
    worker.on('error', (error) => {
      reason = unavailable(`lost its thread, to: ${error.message}. Another one is started.`);
    });
    worker.on('exit', () => this.#ended(worker, reason));
    if (this.#listening) this.#post({ kind: 'listen', on: true });
  }

  #take(message: FromThread): void {
    switch (message.kind) {
      case 'opened':
        this.#opening?.resolve(message);
        this.#unrefIdle();
        break;
      case 'responses':
        for (const response of message.responses) this.#end(response);
        if (message.responses.some((response) => 'wakes' in response && response.wakes)) {
          this.hooks.onWake();
        }
        break;
      case 'changed':
        this.hooks.onWake();
        break;
      case 'clock':
        this.hooks.onClock(message.clock);
        break;
      case 'failed':
      case 'closed':
        // The `exit` event of the worker follows.
        break;
    }
  }

  /** Lets the process exit while the thread is idle; while the client closes, the process waits for the thread. */
  #unrefIdle(): void {
    if (this.#calls.isIdle && this.#closed === undefined) this.#worker?.unref();
  }

  #end(response: CallResponse): void {
    const call = this.#calls.take(response.number);
    if ('failure' in response) call?.reject(toError(response.failure));
    else call?.resolve(adopt(response.value) as never);
  }

  /** The next call starts another thread. */
  #ended(worker: Worker, reason: PaymentsError): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.unexpectedEnds += 1;
    this.#opening?.reject(reason);
    this.#outbox = [];
    this.#calls.rejectAll(reason);
    if (this.#listening) setTimeout(() => this.#start(), RESTART_MS).unref();
  }
}
