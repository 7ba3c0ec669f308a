import { startChild } from '../processes/child.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import type { Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';

const OURS = 'nestjs-payments';
const ROUTE = 'Nest route, nothing verified';
const LIMIT = 'node:http and HMAC-SHA512';

// V8 compiles code of nestjs-payments until about 48,000 deliveries have run. V8 compiles the code of the other
// contenders earlier.
const WARM_UP = 8;

export const receiveFastify: Row = {
  name: 'receive-fastify',
  title: 'Receiving, memory inbox, Fastify',
  rounds: 9,
  async open(scale, ending) {
    const servers = await Promise.all([
      startChild('apps/payments.ts', { adapter: 'fastify', inbox: { kind: 'memory' } }),
      startChild('apps/nest-route.ts', { adapter: 'fastify' }),
      startChild('apps/node-http.ts'),
    ]);
    for (const server of servers) ending.defer(() => server.stop());
    const load = await startLoad(ending);
    const order = { scheme: 'payments', count: sized(scale, 8000), connections: 64 } as const;
    const [ours, route, limit] = servers;
    return [
      {
        title: 'Responses to webhook requests, 64 connections',
        unit: 'events/s',
        better: 'higher',
        warmUp: WARM_UP,
        contenders: [
          underLoad(OURS, ours, load, order),
          underLoad(ROUTE, route, load, order),
          underLoad(LIMIT, limit, load, order),
        ],
        targets: [atLeast(0.8, OURS, ROUTE, 'at least 0.80 of the bare Nest Fastify route')],
        notes: [
          'The last line is the limit. A node:http server without a framework verifies the signature and ' +
            'parses the body.',
        ],
      },
    ];
  },
};
