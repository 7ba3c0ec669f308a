import { setTimeout } from 'node:timers/promises';
import type { ApplicationFleet } from './application-fleet.js';
import type { ApplicationProcess } from './application-process.js';
import { monotonicMs } from './application-protocol.js';
import type { EngineFaults } from './chaos-engine.js';
import type { ChaosStore, PostgresFaults } from './chaos-store.js';
import { TAKEOVER_EVENT } from './event-plan.js';
import type { Fault, FaultKind, ProcessFaultKind, ServerFaultKind } from './fault-plan.js';
import { readJournal } from './journal.js';

/** The time that the stopped process has for its stale commit before the other process commits, in milliseconds. */
const STALE_COMMIT_MS = 500;
/** The maximum time that a process may take to start the handler of the takeover event, in milliseconds. */
const HANDLER_START_MS = 20_000;

/** A fault that took place. Times are of the machine's monotonic clock. */
export interface InjectedFault {
  readonly kind: FaultKind;
  /** Journal name of the process that the fault affected; `null` if the fault affected all processes. */
  readonly process: string | null;
  readonly from: number;
  readonly to: number;
}

/** Injects the faults of a plan, each at its time. */
export class FaultInjector {
  readonly injected: InjectedFault[] = [];
  /** Processes that did not end in time after SIGTERM: name and log. */
  readonly lateDrains: string[] = [];
  /** Faults that have begun and not ended. */
  readonly unfinished = new Set<Fault>();
  #serverFault = false;

  constructor(
    private readonly fleet: ApplicationFleet,
    private readonly store: ChaosStore,
    private readonly engine: EngineFaults | null = null,
  ) {}

  /** The processes that run but do not listen: name and log. */
  get silent(): string[] {
    return this.fleet.processes
      .filter(({ url, endedAt }) => url === null && endedAt === null)
      .map(({ name, log }) => `\nDoes not listen: ${name}, with the log: ${log}`);
  }

  /** Resolves once all faults have ended. */
  async inject(plan: readonly Fault[], signal: AbortSignal): Promise<void> {
    const began = performance.now();
    await Promise.all(
      plan.map(async (fault) => {
        await setTimeout(Math.max(0, began + fault.atMs - performance.now()), undefined, {
          signal,
        });
        this.unfinished.add(fault);
        await this.#inject(fault);
        this.unfinished.delete(fault);
      }),
    );
  }

  /**
   * Stops the process that runs the takeover event until another process runs the event, too. Then the first process
   * tries to commit with a stale fencing token, and after that, the second process commits. If no process takes the
   * event over in time, the method injects nothing.
   */
  async takeOver(signal: AbortSignal): Promise<void> {
    const stale = await this.#runner(-Infinity, signal);
    if (stale === null) return;
    // Another process may already take the delivery over while this one is stopped and continued several times.
    const from = monotonicMs();
    await this.#stopOutsideOfTransactions(stale, signal);
    const holder = await this.#runner(from, signal, stale);
    stale.signal('SIGCONT');
    if (holder !== null) {
      this.injected.push({ kind: 'takeover', process: stale.name, from, to: monotonicMs() });
    }
    stale.send({ type: 'proceed' });
    // The stale commit happens while the other process has the delivery.
    await setTimeout(STALE_COMMIT_MS, undefined, { signal });
    holder?.send({ type: 'proceed' });
  }

  /**
   * Stops a process while it has no open transaction. Otherwise, it would block all other processes from the database.
   */
  async #stopOutsideOfTransactions(
    application: ApplicationProcess,
    signal: AbortSignal,
  ): Promise<void> {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      application.signal('SIGSTOP');
      for (let check = 0; check < 20; check += 1) {
        await setTimeout(10, undefined, { signal });
        if (!(await this.store.locked().catch(() => true))) return;
      }
      application.signal('SIGCONT');
      await setTimeout(10, undefined, { signal });
    }
  }

  /**
   * Returns the process, other than `except`, that started the handler of the takeover event after `since`; `null` if
   * there is none.
   */
  async #runner(
    since: number,
    signal: AbortSignal,
    except?: ApplicationProcess,
  ): Promise<ApplicationProcess | null> {
    const end = monotonicMs() + HANDLER_START_MS;
    const runs = (process: ApplicationProcess): boolean =>
      process !== except &&
      process.endedAt === null &&
      readJournal(process.setup.journal).some(
        (entry) =>
          entry.kind === 'attempt-started' &&
          entry.event === TAKEOVER_EVENT.id &&
          entry.handler === 'book' &&
          entry.at > since,
      );
    for (;;) {
      const found = this.fleet.processes.findLast(runs);
      if (found !== undefined) return found;
      if (monotonicMs() > end) return null;
      await setTimeout(50, undefined, { signal });
    }
  }

  async #inject({ kind, target, ms, restart }: Fault): Promise<void> {
    switch (kind) {
      case 'deploy':
        return this.#deploy();
      case 'takeover':
        return;
      case 'terminate':
      case 'kill-backend':
      case 'restart':
      case 'stop-backends':
        return this.#onServer(kind, restart, ms, this.store.postgres!);
      case 'engine-kill':
      case 'engine-stop':
      case 'engine-restart':
        if (!this.engine!.isReady()) return;
        return this.#timed(kind, null, () => this.engine!.inject(kind, ms));
      case 'kill':
      case 'stop':
      case 'block':
      case 'drain':
      case 'clock':
      case 'cut':
      case 'partition':
      case 'engine-cut':
      case 'engine-partition':
        return this.fleet.use(target, (application, number) =>
          this.#timed(kind, application.name, () => this.#onProcess(kind, ms, application, number)),
        );
    }
  }

  async #onProcess(
    kind: ProcessFaultKind,
    ms: number,
    application: ApplicationProcess,
    number: number,
  ): Promise<void> {
    const server = kind.startsWith('engine-') ? this.engine : this.store.postgres;
    const proxy = server?.proxies[number];
    switch (kind) {
      case 'kill':
        return this.fleet.kill(number);
      case 'stop':
        application.signal('SIGSTOP');
        await setTimeout(ms);
        application.signal('SIGCONT');
        return;
      case 'block':
        application.send({ type: 'block', ms });
        await setTimeout(ms);
        return;
      case 'clock':
        application.send({ type: 'clock', offsetMs: ms });
        return;
      case 'drain':
        if (!(await this.fleet.drain(number))) this.#drainedLate(application);
        return;
      case 'cut':
      case 'engine-cut':
        proxy?.cut();
        return;
      case 'partition':
      case 'engine-partition':
        proxy?.silence(true);
        await setTimeout(ms);
        proxy?.silence(false);
    }
  }

  async #deploy(): Promise<void> {
    for (let number = 0; number < this.fleet.count; number += 1) {
      await this.#timed('deploy', null, async () => {
        const late = await this.fleet.deploy(number);
        if (late !== null) this.#drainedLate(late);
      });
    }
  }

  #drainedLate({ name, log }: ApplicationProcess): void {
    this.lateDrains.push(`${name}: ${log.slice(-1000)}`);
  }

  /**
   * Injects one server fault at a time, because a server that is starting cannot be stopped. Leaves a fault out while
   * another fault takes place, because on a busy machine a restart can take longer than the time until the next fault.
   */
  async #onServer(
    kind: ServerFaultKind,
    restart: Fault['restart'],
    ms: number,
    postgres: PostgresFaults,
  ): Promise<void> {
    if (this.#serverFault) return;
    this.#serverFault = true;
    try {
      await this.#timed(kind, null, async () => {
        if (kind === 'terminate') await postgres.terminate();
        else if (!postgres.controllable) return;
        else if (kind === 'kill-backend') await postgres.killBackend();
        else if (kind === 'stop-backends') await postgres.stopBackends(ms);
        else await postgres.restart(restart);
      });
    } catch {
      // The server is still recovering from the previous fault.
    } finally {
      this.#serverFault = false;
    }
  }

  async #timed(kind: FaultKind, process: string | null, work: () => Promise<void>): Promise<void> {
    const from = monotonicMs();
    try {
      await work();
    } finally {
      this.injected.push({ kind, process, from, to: monotonicMs() });
    }
  }
}
