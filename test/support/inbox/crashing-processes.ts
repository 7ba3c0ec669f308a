import { fixed } from '../../../libs/payments/src/events/retry-schedule.js';
import type { WorkerOptions } from '../../../libs/payments/src/inbox/work/worker-options.js';
import { turns, WorkerHarness } from './worker-harness.js';

/** Worker options of each process. */
export const OPTIONS = { leaseMs: 3000, timeoutMs: 600_000, retry: fixed([0, 0, 0]) };

/** Processes that run one after the other on one store. A process crashes when it runs the poison event. */
export class CrashingProcesses {
  current: WorkerHarness;
  /** Ids of the events that each process ran, in order. */
  readonly ran: string[][] = [];
  readonly #open = new Map<string, () => void>();

  private constructor(
    readonly first: WorkerHarness,
    private readonly options: WorkerOptions,
  ) {
    this.current = first;
  }

  static async open(differences: WorkerOptions = {}): Promise<CrashingProcesses> {
    const options = { ...OPTIONS, ...differences };
    return new CrashingProcesses(await WorkerHarness.shared(options), options);
  }

  /** Starts the next process. With `null`, no event is the poison. */
  start(poison: string | null = 'poison'): WorkerHarness {
    if (this.ran.length > 0) this.current = new WorkerHarness(this.options, { of: this.first });
    const harness = this.current;
    const ran: string[] = [];
    this.ran.push(ran);
    harness.handle = async ({ id }) => {
      ran.push(id);
      if (id === poison) harness.crash();
      await new Promise<void>((resolve) => this.#open.set(id, resolve));
    };
    harness.worker.start();
    return harness;
  }

  /** Starts a process that crashes while it runs these events. */
  async crashWhileRunning(...ids: readonly string[]): Promise<void> {
    this.start(null);
    await turns();
    for (const id of ids) await this.current.receive(id);
    await turns();
    this.current.crash();
  }

  /** Ends the handler of an event. */
  async end(id: string): Promise<void> {
    this.#open.get(id)?.();
    await turns();
  }
}
