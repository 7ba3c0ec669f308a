import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Sample } from '../rounds/row.ts';
import type { LoadOrder, LoadResult } from './load-process.ts';

/** Starts the process that sends the webhook requests of a row. */
export async function startLoad(ending: AsyncDisposableStack): Promise<CommandProcess> {
  const load = await startChild('load/load-process.ts');
  ending.defer(() => load.stop());
  return load;
}

/**
 * Returns a contender that measures a server under load: responses per second, and the server's processor time per
 * response in milliseconds. If `settled` is true, each round waits until all deliveries are handled, and its processor
 * time includes this work.
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
