import { fixed } from '../../../libs/payments/src/events/retry-schedule.js';
import type { WorkerOptions } from '../../../libs/payments/src/inbox/inbox-options.js';
import { pass, turns, WorkerHarness } from './worker-harness.js';

/** Worker options of each process. */
export const OPTIONS = { leaseMs: 3000, timeoutMs: 600_000, retry: fixed([0, 0, 0]) };

/** Processes that run one after the other on one store. A process crashes when it runs the poison event. */
export class CrashingProcesses {
  readonly first: WorkerHarness;
  current: WorkerHarness;
  /** Ids of the events that each process ran, in order. */
  readonly ran: string[][] = [];
  /** Ids of the events that ran next to the poison event, for each crash. */
  readonly nextTo: string[][] = [];
  readonly #open = new Map<string, () => void>();

  constructor(private readonly options: WorkerOptions = {}) {
    this.first = new WorkerHarness({ ...OPTIONS, ...options });
    this.current = this.first;
  }

  /** Starts the next process. With `null`, no event is the poison. */
  start(poison: string | null = 'poison'): WorkerHarness {
    if (this.ran.length > 0)
      this.current = new WorkerHarness({ ...OPTIONS, ...this.options }, { of: this.first });
    const harness = this.current;
    const ran: string[] = [];
    this.ran.push(ran);
    const running = new Set<string>();
    harness.handle = async ({ id }) => {
      ran.push(id);
      running.add(id);
      if (id === poison) {
        this.nextTo.push([...running].filter((other) => other !== id));
        harness.crash();
      }
      await new Promise<void>((resolve) => this.#open.set(id, resolve));
      running.delete(id);
    };
    harness.worker.start();
    return harness;
  }

  /** Ends the handler of an event. */
  async end(id: string): Promise<void> {
    this.#open.get(id)?.();
    await turns();
  }
}

/** Processes of which two crashed while they ran the event `suspect`, so that it must run alone next time. */
export async function withSuspect(): Promise<CrashingProcesses> {
  const processes = new CrashingProcesses();
  for (let crashes = 0; crashes < 2; crashes += 1) {
    const harness = processes.start(null);
    await turns();
    await harness.receive('suspect');
    await pass(harness, 8);
    harness.crash();
  }
  return processes;
}
