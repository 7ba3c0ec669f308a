import { fixed } from '../../../libs/payments/src/events/retry-schedule.js';
import type { WorkerOptions } from '../../../libs/payments/src/inbox/inbox-options.js';
import { pass, turns, WorkerBench } from './worker-bench.js';

/** Options of each process of a host. */
export const OPTIONS = { leaseMs: 3000, timeoutMs: 600_000, retry: fixed([0, 0, 0]) };

/** One process after another on one store. Each dies when it runs the poison. */
export class Host {
  readonly first: WorkerBench;
  process: WorkerBench;
  /** What each process ran, in order. */
  readonly ran: string[][] = [];
  /** The most that ran next to a suspect. */
  readonly nextTo: string[][] = [];
  readonly #open = new Map<string, () => void>();

  constructor(private readonly options: WorkerOptions = {}) {
    this.first = new WorkerBench({ ...OPTIONS, ...options });
    this.process = this.first;
  }

  start(poison: string | null = 'poison'): WorkerBench {
    if (this.ran.length > 0)
      this.process = new WorkerBench({ ...OPTIONS, ...this.options }, { of: this.first });
    const bench = this.process;
    const ran: string[] = [];
    this.ran.push(ran);
    const running = new Set<string>();
    bench.handle = async ({ id }) => {
      ran.push(id);
      running.add(id);
      if (id === poison) {
        this.nextTo.push([...running].filter((other) => other !== id));
        bench.crash();
      }
      await new Promise<void>((resolve) => this.#open.set(id, resolve));
      running.delete(id);
    };
    bench.worker.start();
    return bench;
  }

  /** Ends the handler of an event. */
  async end(id: string): Promise<void> {
    this.#open.get(id)?.();
    await turns();
  }
}

/** A host with an event, `suspect`, during which two processes died: it must run alone. */
export async function withSuspect(): Promise<Host> {
  const host = new Host();
  for (const _life of [1, 2]) {
    const bench = host.start(null);
    await turns();
    await bench.receive('suspect');
    await pass(bench, 8);
    bench.crash();
  }
  return host;
}
