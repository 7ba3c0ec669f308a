import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Sample } from '../rounds/row.ts';
import type { LoadOrder, LoadResult } from './load-process.ts';

/** Starts the process that sends the deliveries of a row. */
export async function startLoad(ending: AsyncDisposableStack): Promise<CommandProcess> {
  const load = await startChild('load/load-process.ts');
  ending.defer(() => load.stop());
  return load;
}

/**
 * A server under load: responses per second, and the server's processor time for each response in milliseconds. If
 * `settled` is true, each round ends only when the server has handled every delivery.
 */
export function underLoad(
  name: string,
  server: CommandProcess,
  load: CommandProcess,
  order: Omit<LoadOrder, 'url'>,
  settled = false,
): Contender {
  return {
    name,
    async measure(): Promise<Sample> {
      const before = await server.usage();
      const result = await load.request<LoadResult>('send', {
        ...order,
        url: server.ready as string,
      });
      if (settled) await server.request('settled');
      const after = await server.usage();
      const more = { cpuMsPerEvent: (after.cpuMs - before.cpuMs) / order.count };
      return { value: order.count / result.seconds, more };
    },
  };
}
