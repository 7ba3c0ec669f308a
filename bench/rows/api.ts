import type { ApiCaller, CallOrder } from '../apps/api-client.ts';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row, Scale, Table } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';

const OURS = 'payments.getTransaction()';
const OURS_HTTP = "payments.getTransaction(), adapter 'http'";
const HTTP_SERVICE = 'HttpService with a fixed header';
const CALLERS: readonly [string, ApiCaller][] = [
  [OURS, 'ours'],
  [OURS_HTTP, 'ours-http'],
  [HTTP_SERVICE, 'http-service'],
  ['undici', 'undici'],
];

export const api: Row = {
  name: 'api',
  title: 'Calling the service',
  rounds: 9,
  async open(scale, ending) {
    const service = await startChild('apps/payments-service.ts');
    ending.defer(() => service.stop());
    const baseUrl = service.ready as string;
    const callers: { name: string; child: CommandProcess }[] = [];
    for (const [name, caller] of CALLERS) {
      const child = await startChild('apps/api-client.ts', { caller, baseUrl });
      ending.defer(() => child.stop());
      callers.push({ name, child });
    }
    return [tableOf(callers, 16, 8000, scale), tableOf(callers, 1, 3000, scale)];
  },
};

function tableOf(
  callers: readonly { name: string; child: CommandProcess }[],
  width: number,
  calls: number,
  scale: Scale,
): Table {
  const order: CallOrder = { count: sized(scale, calls), width };
  const contenders = callers.map(({ name, child }): Contender => ({
    name,
    async measure() {
      const before = await child.usage();
      const ms = await child.request<number>('calls', order);
      const { cpuMs } = await child.usage();
      const more = { cpuMsPerCall: (cpuMs - before.cpuMs) / order.count };
      return { value: (order.count / ms) * 1000, more };
    },
  }));
  const at = width === 1 ? 'one at a time' : `${width} at a time`;
  return {
    title: `Calls over kept-alive connections to a loopback server, ${at}`,
    unit: 'calls/s',
    better: 'higher',
    contenders,
    targets: [
      atLeast(2, OURS, HTTP_SERVICE, 'at least 2 times HttpService'),
      atLeast(0.85, OURS_HTTP, HTTP_SERVICE, 'at least 0.85 of HttpService'),
    ],
    notes: [
      'nestjs-payments checks the path, adds the token, limits the time and the size of the response, ' +
        'determines whether the request was sent, and checks the response. The other contenders only send the ' +
        "request and parse the response. HttpService and the adapter 'http' use node:http. The default adapter " +
        'uses undici.',
    ],
  };
}
