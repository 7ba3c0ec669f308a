import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';

const OURS = 'nestjs-payments';
const ROUTE = 'Nest route, nothing verified';
const GUARD = 'nestjs-payments, WebhookGuard alone';
const GOLEVELUP = '@golevelup/nestjs-stripe';

// V8 compiles code of nestjs-payments until about 48,000 deliveries have run. V8 compiles the code of the other
// contenders earlier.
const WARM_UP = 8;

export const receiveExpress: Row = {
  name: 'receive-express',
  title: 'Receiving, memory inbox, Express',
  rounds: 9,
  async open(scale, ending) {
    const servers = await Promise.all([
      startChild('apps/payments.ts', { adapter: 'express', inbox: { kind: 'memory' } }),
      startChild('apps/nest-route.ts', { adapter: 'express' }),
      startChild('apps/golevelup-stripe.ts', { adapter: 'express' }),
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
          'nestjs-payments responds after the handler has succeeded and the event is stored, so that the inbox ' +
            'recognises a copy of the event. The bare Nest route does not verify or store the event. ' +
            '@golevelup/nestjs-stripe verifies HMAC-SHA256. This processor may compute HMAC-SHA256 several times ' +
            'faster than HMAC-SHA512, with which the payments service signs. In the last line, a controller of ' +
            'the application uses WebhookGuard, which verifies and parses the event but does not store it.',
        ],
      },
      {
        title: 'The inbox alone, without HTTP, 64 events at a time',
        unit: 'events/s',
        better: 'higher',
        warmUp: WARM_UP,
        contenders: [inProcess('PaymentInbox.receive()', inbox, order.count)],
        targets: [],
        notes: [
          'PaymentInbox.receive() gets events that are already verified. The inbox stores each event, leases, ' +
            'runs and settles its delivery, and keeps the event id.',
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
      // The processor time includes the creation of the deliveries.
      const cpuMsPerEvent = (after.cpuMs - before.cpuMs) / count;
      return { value: (count / ms) * 1000, more: { cpuMsPerEvent } };
    },
  };
}
