import { receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { SqliteSettings } from '../sqlite-options.js';
import { storedClock } from './write-ahead-log.js';
import { runBatch, runRead, takeBatch } from './batch.js';
import type { SqliteConnection } from './connection.js';
import type { Answer, Call, FromThread, ToThread } from './messages.js';
import { WRITES } from './operations.js';
import type { WriteAheadLog } from './write-ahead-log.js';

/** How long a window lasts at most, in milliseconds: an event loop that hangs does not stop the inbox. */
const WINDOW_MS = 200;

/** How far the stored clock may be behind, and ahead unnoticed, in milliseconds. */
const CLOCK_SLACK_MS = 500;

/** Number of a call that the thread adds itself. Its answer is not sent. */
const OWN_CALL = 0;

/** The thread's end of the store: gathers calls into batches, answers them, grants windows. */
export class SqliteServer {
  #queue: Call[] = [];
  #windows: Call[] = [];
  /** Set while a batch is about to run. */
  #flush: Disposable | undefined;
  /** Set while the event loop has the file for itself. */
  #window: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** Whether a window was last: then a batch that waits is run before the next window. */
  #windowWasLast = false;
  #dataVersion = 0;

  constructor(
    private readonly port: MessagePort,
    private readonly connection: SqliteConnection,
    private readonly log: WriteAheadLog,
    private readonly settings: SqliteSettings,
  ) {}

  start(): void {
    this.port.on('message', (message: ToThread) => {
      this.#take(message);
      this.#plan(this.settings.groupCommitMs);
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
        this.#close();
        break;
    }
  }

  #takeCall(call: Call): void {
    if (call.name === 'window') this.#windows.push(call);
    else if (call.name in WRITES) this.#queue.push(call);
    else this.#answer([runRead(this.connection, call, this.settings.busyTimeoutMs)]);
  }

  /** Plans the next step: windows and batches in turn, a batch `waitMs` from now. */
  #plan(waitMs: number): void {
    if (this.#window !== undefined || this.#flush !== undefined) return;
    const batchWaits = this.#queue.length > 0;
    if (this.#windows.length > 0 && !(this.#windowWasLast && batchWaits)) this.#grant();
    else if (batchWaits) this.#flush = soon(waitMs, () => this.#run());
  }

  #run(): void {
    this.#flush = undefined;
    this.#windowWasLast = false;
    this.#write(this.settings.busyTimeoutMs);
    // Calls that were sent during the commit have waited long enough.
    for (let next = receiveMessageOnPort(this.port); next; next = receiveMessageOnPort(this.port)) {
      this.#take(next.message as ToThread);
    }
    this.log.keepShort(this.#queue.length > 0);
    this.#plan(0);
  }

  #write(busyTimeoutMs: number): void {
    const calls = this.#withClock(takeBatch(this.#queue, this.settings.maxBatch));
    const answers = runBatch(this.connection, calls, { ...this.settings, busyTimeoutMs });
    this.#answer(answers.filter(({ number }) => number !== OWN_CALL));
  }

  /**
   * Keeps the clocks of the processes together. If the stored clock is ahead of the calls, another process has a later
   * clock, and the calls use it. If it is too far behind, the batch stores the later one.
   */
  #withClock(calls: readonly Call[]): readonly Call[] {
    const latest = calls.map(({ times }) => times).reduce((a, b) => (b.clock > a.clock ? b : a));
    const aheadMs = this.#readClock(latest.clock) - latest.clock;
    if (aheadMs > CLOCK_SLACK_MS) this.#send({ kind: 'clock', clock: latest.clock + aheadMs });
    if (aheadMs > 0) {
      return calls.map((call) => ({
        ...call,
        times: { ...call.times, clock: call.times.clock + aheadMs },
      }));
    }
    // Not for claims only: most claims of an idle inbox find nothing, and would be synced just for the clock.
    if (aheadMs > -CLOCK_SLACK_MS || calls.every(({ name }) => name.startsWith('claim'))) {
      return calls;
    }
    return [...calls, { number: OWN_CALL, name: 'sync', request: null, times: latest }];
  }

  #readClock(fallback: number): number {
    try {
      return storedClock(this.connection).clock;
    } catch {
      // The batch will fail of the same cause, and report it.
      return fallback;
    }
  }

  #grant(): void {
    this.#windowWasLast = true;
    const answers = this.#windows.splice(0).map(({ number }) => ({ number, value: null }));
    this.#window = setTimeout(() => {
      this.#closeWindow();
      this.#plan(0);
    }, WINDOW_MS);
    this.#answer(answers);
  }

  #closeWindow(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
  }

  #listen(on: boolean): void {
    clearInterval(this.#poll);
    if (!on) return;
    this.#dataVersion = this.#readDataVersion();
    this.#poll = setInterval(() => {
      const version = this.#readDataVersion();
      if (version !== this.#dataVersion) this.#send({ kind: 'changed' });
      this.#dataVersion = version;
    }, this.settings.wakePollMs);
  }

  /** Changes when another connection commits (https://www.sqlite.org/pragma.html#pragma_data_version). */
  #readDataVersion(): number {
    try {
      return this.connection.get<{ data_version: number }>('PRAGMA data_version')!.data_version;
    } catch {
      return this.#dataVersion;
    }
  }

  /** First runs all calls that were sent before. Together they wait for a lock as long as one batch does. */
  #close(): void {
    this.#flush?.[Symbol.dispose]();
    clearInterval(this.#poll);
    this.#closeWindow();
    const end = performance.now() + this.settings.busyTimeoutMs;
    while (this.#queue.length > 0) this.#write(end - performance.now());
    this.log.empty();
    this.connection.close();
    this.#send({ kind: 'closed' });
    this.port.close();
  }

  #answer(answers: readonly Answer[]): void {
    if (answers.length > 0) this.#send({ kind: 'answers', answers });
  }

  #send(message: FromThread): void {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
    this.port.postMessage(message);
  }
}

/** A timer of 0 ms would take 1 ms, which is as long as a commit. */
function soon(waitMs: number, run: () => void): Disposable {
  return waitMs > 0 ? setTimeout(run, waitMs) : setImmediate(run);
}
