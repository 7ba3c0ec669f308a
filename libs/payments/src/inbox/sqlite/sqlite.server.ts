import { receiveMessageOnPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import { runBatch, runClaims, runRead, takeBatch } from './sqlite.batch.js';
import type { SqliteConnection } from './sqlite.connection.js';
import type { Answer, Call, FromThread, ToThread } from './sqlite.messages.js';
import { WRITES } from './sqlite.operations.js';
import type { SqliteSettings } from './sqlite.options.js';
import type { WriteAheadLog } from './sqlite.wal.js';

/** For how long a window lasts at the most, in milliseconds: an event loop that hangs does not stop the inbox. */
const WINDOW_MS = 200;

/** How long after a claim it is on the disk at the latest, in milliseconds, beside the time that the disk takes. */
const CLAIM_SYNC_MS = 5;

/** What is asked by nobody, to have the log synced. */
const BARRIER: Call = { number: 0, name: 'barrier', request: null, now: 0 };

/** The thread's end of the store: gathers calls into batches, answers them, grants windows. */
export class SqliteServer {
  #queue: Call[] = [];
  #windows: Call[] = [];
  /** Set while a batch is about to run. */
  #flush: Disposable | undefined;
  /** Set while the event loop has the file for itself. */
  #window: NodeJS.Timeout | undefined;
  #poll: NodeJS.Timeout | undefined;
  /** Set while a claim is not known to be on the disk. */
  #unsynced: NodeJS.Timeout | undefined;
  /** Whether the last turn was a window's: then a batch that waits comes before another window. */
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
    else {
      this.#answer([runRead(this.connection, call, this.settings.busyTimeoutMs)]);
    }
  }

  /** Sees to it that what waits is done: windows and batches in turn, a batch `waitMs` from now. */
  #plan(waitMs: number): void {
    if (this.#window !== undefined || this.#flush !== undefined) return;
    const batchWaits = this.#queue.length > 0;
    if (this.#windows.length > 0 && !(this.#windowWasLast && batchWaits)) this.#grant();
    else if (batchWaits) this.#flush = soon(waitMs, () => this.#run());
  }

  #run(): void {
    this.#flush = undefined;
    this.#windowWasLast = false;
    this.#write();
    // What was sent during the commit has waited long enough.
    for (let next = receiveMessageOnPort(this.port); next; next = receiveMessageOnPort(this.port)) {
      this.#take(next.message as ToThread);
    }
    this.log.keepShort(this.#queue.length > 0);
    this.#plan(0);
  }

  /**
   * Claims first, and told at once, so that handlers begin while the others' commit waits for the disk. That one
   * has the claims on the disk too; where there are none, the worker's next settlement may, or a barrier soon.
   */
  #write(): void {
    const calls = takeBatch(this.#queue, this.settings.maxBatch);
    const claims = calls.filter(({ name }) => name === 'claim');
    const others = calls.filter(({ name }) => name !== 'claim');
    if (claims.length > 0) {
      const answers = runClaims(this.connection, inTime(claims, others), this.settings);
      this.#answer(answers);
      if (answers.some(hasClaimed)) {
        this.#unsynced ??= setTimeout(() => {
          this.#syncNext();
          this.#plan(0);
        }, CLAIM_SYNC_MS);
      }
    }
    if (others.length > 0) this.#answer(this.#runSynced(others));
  }

  /** Runs writes; where they wrote anything, it is on the disk when it returns, with every commit before. */
  #runSynced(calls: readonly Call[]): Answer[] {
    const before = this.#changes();
    const answers = runBatch(this.connection, calls, this.settings);
    // A commit of nothing waits for nothing.
    if (answers.some((answer) => 'value' in answer) && this.#changes() > before) this.#synced();
    return answers.filter(({ number }) => number !== BARRIER.number);
  }

  #changes(): number {
    return this.connection.get<{ changes: number }>('SELECT total_changes() AS changes')!.changes;
  }

  #synced(): void {
    clearTimeout(this.#unsynced);
    this.#unsynced = undefined;
  }

  /** Has the next batch sync, whatever it does. */
  #syncNext(): void {
    this.#synced();
    this.#queue.push(BARRIER);
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

  /** Everything asked before the end is done first. */
  #close(): void {
    this.#flush?.[Symbol.dispose]();
    clearInterval(this.#poll);
    this.#closeWindow();
    while (this.#queue.length > 0 || this.#unsynced !== undefined) {
      if (this.#queue.length === 0) this.#syncNext();
      this.#write();
    }
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

/** What the holder of a lease asks for. */
const OF_LEASES: ReadonlySet<Call['name']> = new Set(['complete', 'fail', 'release', 'extend']);

/** Claims that take over no lease whose holder asked for something beside them while it was held. */
function inTime(claims: readonly Call[], others: readonly Call[]): Call[] {
  const asked = others.filter(({ name }) => OF_LEASES.has(name)).map(({ now }) => now);
  const first = Math.min(...asked);
  return claims.map((claim) => ({ ...claim, now: Math.min(claim.now, first) }));
}

function hasClaimed(answer: Answer): boolean {
  return 'value' in answer && (answer.value as readonly unknown[]).length > 0;
}

/** A timer of 0 ms would take 1 ms, which is as long as a commit. */
function soon(waitMs: number, run: () => void): Disposable {
  return waitMs > 0 ? setTimeout(run, waitMs) : setImmediate(run);
}
