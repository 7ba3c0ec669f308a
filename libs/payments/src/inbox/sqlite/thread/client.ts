import { Worker } from 'node:worker_threads';
import type { PaymentsError } from '../../../errors/payments-error.js';
import { toError, unavailable } from '../sqlite-failure.js';
import type { Times } from '../store-clock.js';
import type { Answer, Call, FromThread, Opened, ThreadData, ToThread } from './messages.js';
import type { AnswerOf, OperationName, RequestOf } from './operations.js';
import type { SqliteSettings } from '../sqlite-options.js';
import { PendingCalls } from './pending-calls.js';
import { findThreadFile } from './thread-file.js';
import { UnansweredCalls } from './unanswered-calls.js';

/** Receives in one message at most. */
const MAX_GATHERED = 16;

/** How long after a thread ended unexpectedly another one is started, if there are listeners, in milliseconds. */
const RESTART_MS = 1000;

/** The store's end of the thread: starts it, starts another if it dies, and answers every call in time. */
export class SqliteClient {
  readonly #pending: PendingCalls;
  readonly #unanswered = new UnansweredCalls();
  /** Calls that go to the thread in one message. */
  #outbox: Omit<Call, 'times'>[] = [];
  /** How often a thread ended unexpectedly. */
  deaths = 0;
  #worker: Worker | undefined;
  /** The file that the thread runs; known once {@link open} was called. */
  #file: string | undefined;
  #opening: PromiseWithResolvers<Opened> | undefined;
  #number = 0;
  #listening = false;
  #closed: Promise<void> | undefined;

  constructor(
    private readonly settings: SqliteSettings,
    private readonly times: () => Times,
    /** Another process wrote. */
    private readonly onChanged: () => void,
    /** Another process has a later clock. */
    private readonly onClock: (clock: number) => void,
  ) {
    this.#pending = new PendingCalls(
      this.#timeoutMs(),
      ({ reject }) => reject(this.#late()),
      () => this.#unrefIdle(),
    );
  }

  /**
   * Starts the thread; resolves when it has opened the file.
   *
   * @throws PaymentsError `options_invalid` if the thread's file is missing; `inbox_unavailable` if the thread cannot
   *   use the database.
   */
  async open(): Promise<Opened> {
    this.#file = await findThreadFile(this.settings.threadPath);
    if (this.#closed !== undefined) throw unavailable('is closed.');
    this.#start();
    const late = setTimeout(() => void this.#worker?.terminate(), this.#timeoutMs()).unref();
    return this.#opening!.promise.finally(() => clearTimeout(late));
  }

  /**
   * Runs an operation in the thread.
   *
   * @throws PaymentsError `inbox_unavailable` if it failed, or was not answered in time: then it may have been
   *   done.
   */
  async call<Name extends OperationName>(
    name: Name,
    request: RequestOf<Name>,
  ): Promise<AnswerOf<Name>> {
    return this.#call(name, request);
  }

  /** Resolves when the thread leaves the file alone, until {@link closeWindow} or a fifth of a second later. */
  async openWindow(): Promise<void> {
    await this.#call('window', null);
  }

  closeWindow(): void {
    this.#post({ kind: 'windowClosed' });
  }

  /** Whether to look for the writes of other processes. */
  listen(on: boolean): void {
    this.#listening = on;
    this.#post({ kind: 'listen', on });
  }

  /** Completes all calls, and ends the thread. Later calls reject. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const worker = this.#worker;
    if (worker === undefined) return;
    this.#send();
    worker.ref();
    const exited = new Promise((resolve) => worker.once('exit', resolve));
    const late = setTimeout(() => void worker.terminate(), this.#timeoutMs());
    this.#post({ kind: 'close' });
    await exited;
    clearTimeout(late);
  }

  #call<T>(name: Call['name'], request: unknown): Promise<T> {
    if (this.#closed !== undefined) return Promise.reject(unavailable('is closed.'));
    const refusal = this.#unanswered.refusal(name);
    if (refusal !== null) return Promise.reject(refusal);
    this.#start();
    const number = (this.#number += 1);
    return new Promise<T>((resolve, reject) => {
      if (this.#pending.size === 0) this.#worker?.ref();
      this.#pending.add(number, { resolve, reject });
      this.#unanswered.add({ number, name, request });
      this.#outbox.push({ number, name, request });
      this.#planSend(name);
    });
  }

  /**
   * Receives arrive one by one, each from its own connection: those of one turn of the event loop are sent together,
   * unless there are so many that the thread should begin before the turn ends. Everything else is sent at once.
   */
  #planSend(name: Call['name']): void {
    const { length } = this.#outbox;
    if (name !== 'receive' || length === MAX_GATHERED) queueMicrotask(() => this.#send());
    else if (length === 1) setImmediate(() => this.#send());
  }

  /** The call's own wait for a lock, the wait of the batch before it, and the work. */
  #timeoutMs(): number {
    return 2 * this.settings.busyTimeoutMs + 5000;
  }

  #send(): void {
    if (this.#outbox.length === 0) return;
    // One object for all, which is copied once.
    const times = this.times();
    const calls = this.#outbox.map((call) => ({ ...call, times }));
    this.#outbox = [];
    try {
      this.#post({ kind: 'calls', calls });
    } catch {
      // One of them has a value that cannot be sent, for example a function: the others are sent one by one.
      for (const call of calls) this.#sendAlone(call);
    }
  }

  #sendAlone(call: Call): void {
    try {
      this.#post({ kind: 'calls', calls: [call] });
    } catch (error) {
      this.#unanswered.remove(call.number);
      this.#pending.take(call.number)?.reject(
        new TypeError('The SQLite inbox received a value that is no plain data.', {
          cause: error,
        }),
      );
    }
  }

  #post(message: ToThread): void {
    this.#worker?.postMessage(message);
  }

  #start(): void {
    if (this.#worker !== undefined || this.#closed !== undefined) return;
    const workerData: ThreadData = { sqliteInboxThread: this.settings };
    const worker = new Worker(this.#file!, {
      name: 'payments-inbox',
      workerData,
      // Without the application's own loaders. The event loop has printed the ExperimentalWarning already.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    this.#worker = worker;
    this.#opening = Promise.withResolvers();
    // Only `open` waits for it.
    this.#opening.promise.catch(() => {});
    let reason = unavailable('lost its thread, which ended unexpectedly; another one is started.');
    worker.on('message', (message: FromThread) => {
      if (message.kind === 'failed') reason = toError(message.failure);
      this.#take(message);
    });
    worker.on('error', (error) => {
      reason = unavailable(`lost its thread, to: ${error.message}. Another one is started.`);
    });
    worker.on('exit', () => this.#died(worker, reason));
    if (this.#listening) this.#post({ kind: 'listen', on: true });
  }

  #take(message: FromThread): void {
    switch (message.kind) {
      case 'opened':
        this.#opening?.resolve(message);
        this.#unrefIdle();
        break;
      case 'answers':
        for (const answer of message.answers) this.#settle(answer);
        break;
      case 'changed':
        this.onChanged();
        break;
      case 'clock':
        this.onClock(message.clock);
        break;
      case 'failed':
      case 'closed':
        // The thread ends.
        break;
    }
  }

  /** An idle thread does not keep the process alive, except to end. */
  #unrefIdle(): void {
    if (this.#pending.size === 0 && this.#closed === undefined) this.#worker?.unref();
  }

  #settle(answer: Answer): void {
    this.#unanswered.remove(answer.number);
    const pending = this.#pending.take(answer.number);
    if (pending === undefined) return;
    if ('failure' in answer) pending.reject(toError(answer.failure));
    else pending.resolve(answer.value as never);
  }

  #late(): PaymentsError {
    return unavailable(
      `did not answer within ${this.#timeoutMs()} ms: its disk is slow or the file is locked. ` +
        'The operation may be done later.',
    );
  }

  /** The next call starts another thread. */
  #died(worker: Worker, reason: PaymentsError): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.deaths += 1;
    this.#opening?.reject(reason);
    this.#outbox = [];
    this.#unanswered.clear();
    this.#pending.rejectAll(reason);
    if (this.#listening) setTimeout(() => this.#start(), RESTART_MS).unref();
  }
}
