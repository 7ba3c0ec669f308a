import { setTimeout as wait } from 'node:timers/promises';
import { Child } from '../processes/child.ts';
import type { Contender } from '../rounds/row.ts';
import { epochMs } from './tally.ts';
import type { Handled } from './tally.ts';

/** Something that keeps jobs, and the processes that work on them. */
export interface Queue {
  readonly name: string;
  /** The script of its worker processes, and what it is started with. */
  readonly script: string;
  readonly config: unknown;
  /** Puts so many jobs in, none of which may begin. */
  fill(count: number): Promise<void>;
  /** What it takes beyond the workers to have them begin. */
  begin?(): Promise<void>;
}

/** The most worker processes that are measured. */
const MOST_WORKERS = 4;

/** The worker processes of a queue, which do nothing until they are told. */
export async function startWorkers(
  { script, config }: Queue,
  ending: AsyncDisposableStack,
  count = MOST_WORKERS,
): Promise<Child[]> {
  const workers: Child[] = [];
  for (let left = count; left > 0; left -= 1) {
    const worker = await Child.start(script, config);
    ending.defer(() => worker.end());
    workers.push(worker);
  }
  return workers;
}

/** A queue's jobs a second, from the moment its workers may begin until the last handler was called. */
export function drained(queue: Queue, workers: readonly Child[], count: number): Contender {
  const all = <T>(command: string): Promise<T[]> =>
    Promise.all(workers.map((worker) => worker.ask<T>(command)));
  return {
    name: queue.name,
    async measure() {
      await queue.fill(count);
      await all('prepare');
      const before = await Promise.all(workers.map((worker) => worker.usage()));
      const begun = epochMs();
      await Promise.all([queue.begin?.(), all('go')]);
      let handled: Handled[];
      do {
        await wait(20);
        handled = await all<Handled>('handled');
      } while (handled.reduce((sum, one) => sum + one.count, 0) < count);
      await all('stop');
      const after = await Promise.all(workers.map((worker) => worker.usage()));
      const cpuMs = after.reduce((sum, one, place) => sum + one.cpuMs - before[place]!.cpuMs, 0);
      const endedAt = Math.max(...handled.map(({ lastAt }) => lastAt));
      const more = {
        cpuMsPerEvent: cpuMs / count,
        twice: handled.reduce((sum, one) => sum + one.count, 0) - count,
      };
      return { value: (count / (endedAt - begun)) * 1000, more };
    },
  };
}
