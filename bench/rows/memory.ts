import type { Footprint } from '../apps/memory-inbox.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atMost, sized } from '../rounds/row.ts';

const FEW = 'after 50,000 events';
const MANY = 'after 1,000,000 events';

export const memory: Row = {
  name: 'memory',
  title: 'Memory use of the memory inbox',
  rounds: 1,
  open: async (scale) => [
    {
      title: 'Heap and event bodies in use after a garbage collection',
      unit: 'MB',
      better: 'lower',
      contenders: [through(MANY, sized(scale, 1_000_000)), through(FEW, sized(scale, 50_000))],
      targets: [atMost(1.15, MANY, FEW, 'at most 1.15 times the memory after 50,000 events')],
      notes: [
        'By default the memory inbox keeps at most 10,000 events and 64 MiB of bodies. In this measurement, ' +
          'every event has its own id and is handled.',
      ],
      rounds: 1,
      warmUp: 0,
    },
  ],
};

function through(name: string, count: number): Contender {
  return {
    name,
    async measure() {
      const app = await startChild('apps/memory-inbox.ts', {}, ['--expose-gc']);
      try {
        const { heapMb, bodiesMb } = await app.request<Footprint>('through', count);
        return { value: heapMb + bodiesMb };
      } finally {
        await app.stop();
      }
    },
  };
}
