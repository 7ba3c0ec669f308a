import { setTimeout } from 'node:timers/promises';
import type { ApplicationFleet } from './application-fleet.js';
import type { ApplicationProcess } from './application-process.js';
import { machineMs } from './application-protocol.js';
import type { ChaosStore, PostgresFaults } from './chaos-store.js';
import { TAKEN_OVER } from './event-plan.js';
import type { Fault, FaultKind, ProcessFaultKind, ServerFaultKind } from './fault-plan.js';
import { readJournal } from './journal.js';

/** How long a process has for its stale commit before the other one commits, in milliseconds. */
const TAKEOVER_MS = 500;
/** How long another process may take to take over a delivery, in milliseconds: other suspects come before it. */
const TAKEOVER_LIMIT_MS = 20_000;

/** A fault that took place. Times are of the machine's monotonic clock. */
export interface InjectedFault {
  readonly kind: FaultKind;
  /** Name of the journal of the process that it was for; `null` if it was for all. */
  readonly process: string | null;
  readonly from: number;
  readonly to: number;
}

/** Carries out the faults of a plan, each at its time. */
export class FaultInjector {
  readonly injected: InjectedFault[] = [];
  /** Processes that did not end in time after SIGTERM: their names, and what they logged. */
  readonly lateDrains: string[] = [];
  /** Faults that have begun and not ended. */
  readonly underWay = new Set<Fault>();
  #restarting: Promise<void> = Promise.resolve();

  constructor(
    private readonly fleet: ApplicationFleet,
    private readonly store: ChaosStore,
  ) {}

  /** Resolves once all faults are over. */
  async inject(plan: readonly Fault[], signal: AbortSignal): Promise<void> {
    const began = performance.now();
    await Promise.all(
      plan.map(async (fault) => {
        await setTimeout(Math.max(0, began + fault.atMs - performance.now()), undefined, {
          signal,
        });
        this.underWay.add(fault);
        await this.#carryOut(fault);
        this.underWay.delete(fault);
      }),
    );
  }

  /**
   * Stops the process that runs the event of a takeover until another process runs it, too. Then the first one tries to
   * commit, with a stale token, and after it the second one. Resolves without it if nothing takes the event over.
   */
  async takeOver(signal: AbortSignal): Promise<void> {
    const stale = await this.#runner(-Infinity, signal);
    if (stale === null) return;
    await this.#stopOutsideOfTransactions(stale, signal);
    const from = machineMs();
    const holder = await this.#runner(from, signal);
    stale.signal('SIGCONT');
    if (holder !== null) {
      this.injected.push({ kind: 'takeover', process: stale.name, from, to: machineMs() });
    }
    stale.tell({ type: 'proceed' });
    // The stale commit comes while the other process holds the delivery.
    await setTimeout(TAKEOVER_MS, undefined, { signal });
    holder?.tell({ type: 'proceed' });
  }

  /** A process that is stopped within a transaction would keep all others from the database. */
  async #stopOutsideOfTransactions(
    application: ApplicationProcess,
    signal: AbortSignal,
  ): Promise<void> {
    for (let attempt = 0; attempt < 50; attempt += 1) {
      application.signal('SIGSTOP');
      for (let look = 0; look < 20; look += 1) {
        await setTimeout(10, undefined, { signal });
        if (!(await this.store.locked().catch(() => true))) return;
      }
      application.signal('SIGCONT');
      await setTimeout(10, undefined, { signal });
    }
  }

  /** The process that began to run the event of a takeover after `since`; `null` if none does in time. */
  async #runner(since: number, signal: AbortSignal): Promise<ApplicationProcess | null> {
    const end = machineMs() + TAKEOVER_LIMIT_MS;
    const runs = ({ setup, endedAt }: ApplicationProcess): boolean =>
      endedAt === null &&
      readJournal(setup.journal).some(
        (entry) =>
          entry.kind === 'start' &&
          entry.event === TAKEN_OVER &&
          entry.handler === 'book' &&
          entry.at > since,
      );
    for (;;) {
      const found = this.fleet.processes.findLast(runs);
      if (found !== undefined) return found;
      if (machineMs() > end) return null;
      await setTimeout(50, undefined, { signal });
    }
  }

  async #carryOut({ kind, target, amount, restart }: Fault): Promise<void> {
    switch (kind) {
      case 'deploy':
        return this.#deploy();
      case 'takeover':
        return;
      case 'terminate':
      case 'kill-backend':
      case 'restart':
        return this.#onServer(kind, restart, this.store.postgres!);
      case 'kill':
      case 'stop':
      case 'block':
      case 'drain':
      case 'clock':
      case 'cut':
      case 'partition':
        return this.fleet.use(target, (application, number) =>
          this.#timed(kind, application.name, () =>
            this.#onProcess(kind, amount, application, number),
          ),
        );
    }
  }

  async #onProcess(
    kind: ProcessFaultKind,
    amount: number,
    application: ApplicationProcess,
    number: number,
  ): Promise<void> {
    const proxy = this.store.postgres?.proxies[number];
    switch (kind) {
      case 'kill':
        return this.fleet.kill(number);
      case 'stop':
        application.signal('SIGSTOP');
        await setTimeout(amount);
        application.signal('SIGCONT');
        return;
      case 'block':
        application.tell({ type: 'block', ms: amount });
        await setTimeout(amount);
        return;
      case 'clock':
        application.tell({ type: 'clock', offsetMs: amount });
        return;
      case 'drain':
        if (!(await this.fleet.drain(number))) this.#drainedLate(application);
        return;
      case 'cut':
        proxy?.cut();
        return;
      case 'partition':
        proxy?.silence(true);
        await setTimeout(amount);
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

  /** Only one at a time: a server that starts cannot be stopped. */
  async #onServer(
    kind: ServerFaultKind,
    restart: Fault['restart'],
    postgres: PostgresFaults,
  ): Promise<void> {
    const before = this.#restarting;
    const turn = Promise.withResolvers<void>();
    this.#restarting = turn.promise;
    await before;
    try {
      await this.#timed(kind, null, async () => {
        if (kind === 'terminate') await postgres.terminate();
        else if (!postgres.controllable) return;
        else if (kind === 'kill-backend') await postgres.killBackend();
        else await postgres.restart(restart);
      });
    } catch {
      // The server is recovering from the fault before this one.
    } finally {
      turn.resolve();
    }
  }

  async #timed(kind: FaultKind, process: string | null, work: () => Promise<void>): Promise<void> {
    const from = machineMs();
    try {
      await work();
    } finally {
      this.injected.push({ kind, process, from, to: machineMs() });
    }
  }
}
