import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';

const OURS = 'nestjs-payments';
const ROUTE = 'Nest route, nothing verified';
const GUARD = 'nestjs-payments, WebhookGuard alone';
const GOLEVELUP = '@golevelup/nestjs-stripe';

// V8 compiles the code of nestjs-payments until about 48,000 deliveries have run, and the code of the others earlier.
const WARM_UP = 8;

export const receiveExpress: Row = {
  name: 'receive-express',
  title: 'Receiving, memory inbox, Express',
  rounds: 9,
  async open(scale, ending) {
    const servers = await Promise.all([
      startChild('apps/payments.ts', { adapter: 'express', inbox: { kind: 'memory' } }),
      startChild('apps/nest-route.ts', { adapter: 'express' }),
      startChild('apps/golevelup.ts', { adapter: 'express' }),
      startChild('apps/guarded-route.ts', { adapter: 'express' }),
      startChild('apps/memory-inbox.ts'),
    ]);
    for (const server of servers) ending.defer(() => server.stop());
    const load = await startLoad(ending);
    const order = { count: sized(scale, 6000), connections: 64 };
    const [ours, route, golevelup, guard, inbox] = servers;
    return [
      {
        title: 'Responses to webhook requests, 64 connections',
        unit: 'events/s',
        better: 'higher',
        warmUp: WARM_UP,
        contenders: [
          underLoad(OURS, ours, load, { ...order, scheme: 'payments' }),
          underLoad(ROUTE, route, load, { ...order, scheme: 'payments' }),
          underLoad(GOLEVELUP, golevelup, load, { ...order, scheme: 'stripe' }),
          underLoad(GUARD, guard, load, { ...order, scheme: 'payments' }),
        ],
        targets: [
          atLeast(
            0.6,
            OURS,
            ROUTE,
            'at least 0.6 of the bare Nest route that parses the same JSON',
          ),
          atLeast(1.25, OURS, GOLEVELUP, 'at least 1.25 of @golevelup/nestjs-stripe'),
        ],
        notes: [
          'nestjs-payments responds when the handler has succeeded and the event is stored, so that a copy is recognised. ' +
            'The bare route verifies and stores nothing. @golevelup/nestjs-stripe verifies HMAC-SHA256, which ' +
            'this processor may compute several times faster than the HMAC-SHA512 the service signs with. The last ' +
            'line is a controller of the application under WebhookGuard: verified and parsed, and not stored.',
        ],
      },
      {
        title: 'The inbox alone, without HTTP, 64 deliveries at a time',
        unit: 'events/s',
        better: 'higher',
        warmUp: WARM_UP,
        contenders: [inProcess('PaymentInbox.receive()', inbox, order.count)],
        targets: [],
        notes: [
          'Events that are already verified. Each is stored, leased, handled and settled, and its id is kept.',
        ],
      },
    ];
  },
};

function inProcess(name: string, app: CommandProcess, count: number): Contender {
  return {
    name,
    async measure() {
      const before = await app.usage();
      const ms = await app.request<number>('timed', count);
      const after = await app.usage();
      // Includes the creation of the deliveries.
      const cpuMsPerEvent = (after.cpuMs - before.cpuMs) / count;
      return { value: (count / ms) * 1000, more: { cpuMsPerEvent } };
    },
  };
}
