import { join } from 'node:path';
import { startLoad, underLoad } from '../load/load-generator.ts';
import { startChild } from '../processes/child.ts';
import type { Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';
import { temporaryFolder } from './shared/create-temporary-storage.ts';

const OURS = 'SQLite inbox';
const UNHANDLED = 'SQLite inbox, its worker paused';
const LIMIT = 'the limit: node:http and what an inbox writes';
const MEMORY = 'memory inbox';

// Number of rounds before the first measurement, because V8 compiles code until about 48,000 deliveries have run.
const WARM_UP = 8;

export const receiveSqlite: Row = {
  name: 'receive-sqlite',
  title: 'Receiving, SQLite inbox, Express',
  rounds: 9,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    const sqlite = (name: string) => ({ kind: 'sqlite', file: join(folder, `${name}.db`) });
    const adapter = 'express';
    const [ours, unhandled, limit, memory] = await Promise.all([
      startChild('apps/payments.ts', { adapter, inbox: sqlite('ours') }),
      startChild('apps/payments.ts', { adapter, inbox: sqlite('paused'), works: false }),
      startChild('apps/node-http.ts', { database: sqlite('limit') }),
      startChild('apps/payments.ts', { adapter, inbox: { kind: 'memory' } }),
    ]);
    for (const server of [ours, unhandled, limit, memory]) ending.defer(() => server.stop());
    const load = await startLoad(ending);
    const count = sized(scale, 4000);
    const order = { scheme: 'payments', count, connections: 64 } as const;
    return [
      {
        title: 'Responses to webhook requests, 64 connections',
        unit: 'events/s',
        better: 'higher',
        warmUp: WARM_UP,
        contenders: [
          underLoad(OURS, ours, load, order, true),
          underLoad(UNHANDLED, unhandled, load, order),
          underLoad(LIMIT, limit, load, order),
          underLoad(MEMORY, memory, load, order),
        ],
        targets: [atLeast(0.6, OURS, LIMIT, 'at least 0.6 of the limit')],
        notes: [
          'All contenders except the memory inbox respond after the event is on the disk, including fsync. In ' +
            'the first and the last line, handlers run in the same process during the measurement. The third ' +
            'line is the limit: a bare node:http server that verifies the signature, stores the event and its ' +
            'delivery with three unique keys, and marks the delivery as done. This server has no framework, ' +
            'handlers, leases, retries or searches.',
        ],
      },
    ];
  },
};
