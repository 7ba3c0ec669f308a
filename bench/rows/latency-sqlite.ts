import { join } from 'node:path';
import { startChild } from '../processes/child.ts';
import type { Row } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { atMostMs, latencies, PER_SECOND, quantileOf } from './shared/measure-event-latency.ts';
import { temporaryFolder } from './shared/create-temporary-storage.ts';

const MEDIAN = 'p50';
const P99 = 'p99';

export const latencySqlite: Row = {
  name: 'latency-sqlite',
  title: 'From sending to handled, SQLite',
  rounds: 3,
  async open(scale, ending) {
    const file = join(await temporaryFolder(ending), 'inbox.db');
    const app = await startChild('apps/payments-latency.ts', { inbox: { kind: 'sqlite', file } });
    ending.defer(() => app.stop());
    const percentile = (name: string, share: number) => ({
      name,
      measure: async () => ({
        value: quantileOf(await latencies(app, sized(scale, 10) * 1000), share),
      }),
    });
    return [
      {
        title: `${PER_SECOND} events/s`,
        unit: 'ms',
        better: 'lower',
        contenders: [percentile(MEDIAN, 0.5), percentile(P99, 0.99)],
        targets: [atMostMs(MEDIAN, 1.5), atMostMs(P99, 6)],
        notes: ['Each event is on the disk, fsync included, before its handler is called.'],
      },
    ];
  },
};
