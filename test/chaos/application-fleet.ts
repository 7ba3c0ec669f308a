import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ApplicationProcess } from './application-process.js';
import type { ApplicationRequest, ApplicationSetup } from './application-protocol.js';
import { readJournal } from './journal.js';

/** Pause after a process failed to start, in milliseconds. A pause is needed, because the database may be down. */
const RESTART_MS = 200;
/** The additional time that a process may take to end after SIGTERM and `drainMs`, in milliseconds. */
const DRAIN_SLACK_MS = 15_000;

export interface FleetOptions {
  /** The application's main file. */
  readonly file: string;
  readonly count: number;
  /** Folder for journals. */
  readonly folder: string;
  readonly setup: Omit<ApplicationSetup, 'database' | 'version' | 'journal' | 'engine'>;
  /** Path or connection string of the database, for each process number. */
  readonly database: (target: number) => string;
  /** The engine, for each process number. Default: none. */
  readonly engine?: (target: number) => ApplicationSetup['engine'];
}

/** The end of a process. */
export interface ProcessExit {
  /** Exit code or signal. */
  readonly status: string;
  /**
   * `killed` or `drained` by the chaos runner, `crashed` by an event, or `not started` if the process ended before it
   * listened. `null` is an exit without an explanation.
   */
  readonly cause: 'killed' | 'drained' | 'crashed' | 'not started' | null;
  /** The last part of the log of the process. */
  readonly log: string;
}

interface Slot {
  process: ApplicationProcess;
  version: 1 | 2;
  /** Whether a fault affects the process at the moment. */
  busy: boolean;
}

/** Application processes on one database. The fleet restarts each process that ends, for any reason. */
export class ApplicationFleet implements AsyncDisposable {
  /** All processes that were started. */
  readonly processes: ApplicationProcess[] = [];
  readonly exits: ProcessExit[] = [];
  readonly #slots: Slot[] = [];
  #closing = false;

  constructor(private readonly options: FleetOptions) {
    process.on('exit', this.#killAll);
    for (let target = 0; target < options.count; target += 1) {
      const slot: Slot = { version: 1, busy: false, process: this.#spawn(target, 1) };
      this.#slots.push(slot);
      void this.#restartForever(target, slot);
    }
  }

  get count(): number {
    return this.#slots.length;
  }

  /** Resolves once every process listens. Rejects if a process ends or does not listen within `timeoutMs`. */
  async ready(timeoutMs: number): Promise<void> {
    const end = performance.now() + timeoutMs;
    for (;;) {
      const late = this.#slots.find(({ process }) => process.url === null)?.process;
      if (late === undefined) return;
      const log = this.exits[0]?.log ?? (performance.now() > end ? late.log : undefined);
      if (log !== undefined) throw new Error(`An application process does not start: ${log}`);
      await setTimeout(20);
    }
  }

  /** The address of process `target`, or of the next process that listens; `null` if none listens. */
  url(target: number): string | null {
    return this.#from(target).find(({ process }) => process.url !== null)?.process.url ?? null;
  }

  /** Calls `work` with process `target`, or with the next process that listens and that no other fault affects. */
  async use(
    target: number,
    work: (process: ApplicationProcess, target: number) => Promise<void>,
  ): Promise<void> {
    const slot = this.#from(target).find(({ busy, process }) => !busy && process.url !== null);
    if (slot === undefined) return;
    slot.busy = true;
    try {
      await work(slot.process, this.#slots.indexOf(slot));
    } finally {
      slot.busy = false;
    }
  }

  async kill(target: number): Promise<void> {
    const { process } = this.#slots[target]!;
    process.endedBy = 'killed';
    process.signal('SIGKILL');
    await process.ended;
  }

  /** Sends SIGTERM. Returns whether the process ended in time. If not, the process is killed. */
  async drain(target: number): Promise<boolean> {
    const { process } = this.#slots[target]!;
    process.endedBy = 'drained';
    process.url = null;
    process.signal('SIGTERM');
    const timer = new AbortController();
    const inTime = await Promise.race([
      process.ended.then(() => true),
      setTimeout(this.options.setup.drainMs + DRAIN_SLACK_MS, false, {
        signal: timer.signal,
      }).catch(() => false),
    ]);
    timer.abort();
    if (!inTime) process.signal('SIGKILL');
    await process.ended;
    return inTime;
  }

  /** Drains a process and starts the second version instead. Returns the drained process if it did not end in time. */
  async deploy(target: number): Promise<ApplicationProcess | null> {
    const slot = this.#slots[target]!;
    while (slot.busy && !this.#closing) await setTimeout(20);
    slot.busy = true;
    try {
      slot.version = 2;
      const before = slot.process;
      const inTime = await this.drain(target);
      const replaced = (): boolean => slot.process.url !== null && slot.process.setup.version === 2;
      while (!replaced() && !this.#closing) await setTimeout(20);
      return inTime ? null : before;
    } finally {
      slot.busy = false;
    }
  }

  /** Sends a request to any process that listens. Rejects if none listens. */
  async request<T>(type: ApplicationRequest, limitMs?: number): Promise<T> {
    const process = this.#slots.find((slot) => slot.process.url !== null)?.process;
    if (process === undefined) throw new Error('No application process is ready.');
    return process.request<T>(type, limitMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#killAll();
    await Promise.all(this.processes.map(({ ended }) => ended));
    process.off('exit', this.#killAll);
  }

  /** SIGKILL also ends processes that SIGSTOP has stopped. */
  readonly #killAll = (): void => {
    for (const process of this.processes) {
      if (process.endedAt === null) process.signal('SIGKILL');
    }
  };

  #from(target: number): Slot[] {
    const first = target % this.#slots.length;
    return [...this.#slots.slice(first), ...this.#slots.slice(0, first)];
  }

  #spawn(target: number, version: 1 | 2): ApplicationProcess {
    const { file, folder, setup, database, engine } = this.options;
    const journal = path.join(folder, `${target}-${this.processes.length}.journal`);
    const process = new ApplicationProcess(file, {
      ...setup,
      database: database(target),
      engine: engine?.(target) ?? null,
      version,
      journal,
    });
    this.processes.push(process);
    return process;
  }

  async #restartForever(target: number, slot: Slot): Promise<void> {
    for (;;) {
      const { process } = slot;
      const started = await process.ready;
      const status = await process.ended;
      if (this.#closing) return;
      const crashed = readJournal(process.setup.journal).at(-1)?.kind === 'process-killed';
      const cause = process.endedBy ?? (crashed ? 'crashed' : started ? null : 'not started');
      this.exits.push({ status, cause, log: process.log });
      if (!started) await setTimeout(RESTART_MS);
      if (this.#closing) return;
      slot.process = this.#spawn(target, slot.version);
    }
  }
}
