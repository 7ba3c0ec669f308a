import { Child } from '../processes/child.ts';
import type { Contender, Sample } from '../rounds/row.ts';
import type { LoadResult } from './closed.loop.ts';
import type { Scheme } from './deliveries.ts';

export interface LoadOrder {
  readonly url: string;
  readonly scheme: Scheme;
  readonly count: number;
  readonly connections: number;
}

/** The process that sends, of a row. */
export async function startLoad(ending: AsyncDisposableStack): Promise<Child> {
  const load = await Child.start('load/load.process.ts');
  ending.defer(() => load.end());
  return load;
}

/**
 * A server under load: answers a second, and beside them the milliseconds of processor that the server took
 * for each, and how long an answer took. Between the rounds it comes to rest (`settled`, where it has that).
 */
export function underLoad(
  name: string,
  server: Child,
  load: Child,
  order: Omit<LoadOrder, 'url'>,
  settled = false,
): Contender {
  return {
    name,
    async measure(): Promise<Sample> {
      const before = await server.usage();
      const result = await load.ask<LoadResult>('send', { ...order, url: server.ready as string });
      if (settled) await server.ask('settled');
      const after = await server.usage();
      const more = {
        cpuMsPerEvent: (after.cpuMs - before.cpuMs) / order.count,
        p50Ms: result.p50,
        p99Ms: result.p99,
        rssMb: after.rssMb,
      };
      return { value: order.count / result.seconds, more };
    },
  };
}
