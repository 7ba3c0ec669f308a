import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { ApplicationProcess } from './application-process.js';
import type { ApplicationSetup } from './application-protocol.js';
import { readJournal } from './journal.js';

/** Pause before another start, if a process could not start, in milliseconds: its database may be down. */
const RESTART_MS = 200;
/** For how much longer than `drainMs` a process may take to end after SIGTERM, in milliseconds. */
const DRAIN_SLACK_MS = 15_000;

/** How the processes of a fleet start. */
export interface FleetOptions {
  /** The application's main file. */
  readonly file: string;
  readonly count: number;
  /** Folder for journals. */
  readonly folder: string;
  readonly setup: Omit<ApplicationSetup, 'where' | 'version' | 'journal'>;
  readonly where: (target: number) => string;
}

/** A process that ended, and why it was to end: `null` if neither the run nor an event ended it. */
export interface ProcessEnd {
  readonly how: string;
  readonly why: 'killed' | 'drained' | 'poisoned' | 'not started' | null;
  readonly log: string;
}

interface Slot {
  process: ApplicationProcess;
  version: 1 | 2;
  /** Whether a fault is at work on it. */
  busy: boolean;
}

/** Processes of the application on one database. Each that ends, for any reason, is started again. */
export class ApplicationFleet implements AsyncDisposable {
  /** Every process that was started. */
  readonly processes: ApplicationProcess[] = [];
  readonly ends: ProcessEnd[] = [];
  readonly #slots: Slot[] = [];
  #closing = false;

  constructor(private readonly options: FleetOptions) {
    process.on('exit', this.#killAll);
    for (let target = 0; target < options.count; target += 1) {
      const slot: Slot = { version: 1, busy: false, process: this.#spawn(target, 1) };
      this.#slots.push(slot);
      void this.#keepUp(target, slot);
    }
  }

  get count(): number {
    return this.#slots.length;
  }

  /** Resolves once every process takes deliveries; rejects if one ends, or that takes longer than `forMs`. */
  async ready(forMs: number): Promise<void> {
    const end = performance.now() + forMs;
    for (;;) {
      const late = this.#slots.find(({ process }) => process.url === null)?.process;
      if (late === undefined) return;
      const log = this.ends[0]?.log ?? (performance.now() > end ? late.log : undefined);
      if (log !== undefined) throw new Error(`An application does not start: ${log}`);
      await setTimeout(20);
    }
  }

  /** Where process `target`, or else the next that is ready, takes deliveries; `null` if none is. */
  url(target: number): string | null {
    return this.#from(target).find(({ process }) => process.url !== null)?.process.url ?? null;
  }

  /** Does something to process `target`, or else to the next that is ready and has no other fault at the time. */
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

  /** SIGTERM. Returns whether the process ended in time; if not, it is killed. */
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

  /** Drains a process, and starts the second version in its place. Returns it if it did not end in time. */
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

  /** What any ready process answers. Rejects if none does. */
  async ask<T>(type: 'unfinished' | 'report'): Promise<T> {
    const process = this.#slots.find((slot) => slot.process.url !== null)?.process;
    if (process === undefined) throw new Error('No application is ready.');
    return process.ask<T>(type);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing = true;
    this.#killAll();
    await Promise.all(this.processes.map(({ ended }) => ended));
    process.off('exit', this.#killAll);
  }

  /** Also ends those that are stopped. */
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
    const { file, folder, setup, where } = this.options;
    const journal = path.join(folder, `${target}-${this.processes.length}.journal`);
    const process = new ApplicationProcess(file, {
      ...setup,
      where: where(target),
      version,
      journal,
    });
    this.processes.push(process);
    return process;
  }

  async #keepUp(target: number, slot: Slot): Promise<void> {
    for (;;) {
      const { process } = slot;
      const started = await process.ready;
      const how = await process.ended;
      if (this.#closing) return;
      const why = process.endedBy ?? (diedOfEvent(process) ? 'poisoned' : null);
      this.ends.push({ how, why: started ? why : (why ?? 'not started'), log: process.log });
      if (!started) await setTimeout(RESTART_MS);
      if (this.#closing) return;
      slot.process = this.#spawn(target, slot.version);
    }
  }
}

function diedOfEvent(process: ApplicationProcess): boolean {
  return readJournal(process.setup.journal).at(-1)?.kind === 'die';
}
