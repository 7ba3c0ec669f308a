import { setTimeout as wait } from 'node:timers/promises';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender } from '../rounds/row.ts';
import { epochMs } from './handler-counter.ts';
import type { Handled } from './handler-counter.ts';

/** A queue of jobs, and the processes that run them. */
export interface Queue {
  readonly name: string;
  /** The script of its worker processes, and their configuration. */
  readonly script: string;
  readonly config: unknown;
  /** Adds `count` jobs without starting them. */
  fill(count: number): Promise<void>;
  /** Starts the jobs. Only a queue that does not start its jobs when its workers start needs this method. */
  begin?(): Promise<void>;
}

/** The largest number of worker processes that is measured. */
const MAX_WORKERS = 4;

/** Starts the worker processes of a queue. The processes wait for the commands `prepare` and `go`. */
export async function startWorkers(
  { script, config }: Queue,
  ending: AsyncDisposableStack,
  count = MAX_WORKERS,
): Promise<CommandProcess[]> {
  const workers: CommandProcess[] = [];
  for (let left = count; left > 0; left -= 1) {
    const worker = await startChild(script, config);
    ending.defer(() => worker.stop());
    workers.push(worker);
  }
  return workers;
}

/** Measures the jobs per second of a queue, from the start of its workers until the last call of a handler. */
export function jobsPerSecond(
  queue: Pick<Queue, 'name' | 'fill' | 'begin'>,
  workers: readonly CommandProcess[],
  count: number,
): Contender {
  const all = <T>(command: string): Promise<T[]> =>
    Promise.all(workers.map((worker) => worker.request<T>(command)));
  return {
    name: queue.name,
    async measure() {
      await queue.fill(count);
      await all('prepare');
      const before = await Promise.all(workers.map((worker) => worker.usage()));
      const startedAt = epochMs();
      await Promise.all([queue.begin?.(), all('go')]);
      let handled: Handled[];
      do {
        await wait(20);
        handled = await all<Handled>('handled');
      } while (handled.reduce((sum, one) => sum + one.count, 0) < count);
      await all('stop');
      const after = await Promise.all(workers.map((worker) => worker.usage()));
      const cpuMs = after.reduce((sum, one, index) => sum + one.cpuMs - before[index]!.cpuMs, 0);
      const endedAt = Math.max(...handled.map(({ lastAt }) => lastAt));
      return {
        value: (count / (endedAt - startedAt)) * 1000,
        more: { cpuMsPerEvent: cpuMs / count },
      };
    },
  };
}
