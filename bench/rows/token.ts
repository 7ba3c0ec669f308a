import { AccessToken } from '../../libs/payments/dist/api/access-token.js';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row, Scale } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { systemRuntime } from './shared/run-store-operations.ts';

const WARM = 'await token.get()';
const COLD = 'token requests';

export const token: Row = {
  name: 'token',
  title: 'The access token',
  rounds: 9,
  async open(scale, ending) {
    const service = await startChild('apps/payments-service.ts');
    ending.defer(() => service.stop());
    const access = new AccessToken({
      company: 'bench',
      runtime: systemRuntime,
      logger: { warn() {} },
      timeoutMs: 1000,
      requestToken: async () => ({ ok: true, value: 'token', lifetimeMs: 3_599_000 }),
    });
    ending.defer(() => access.close());
    await access.get();
    const plain = { token: 'token' };
    return [
      {
        title: 'A cached token, 100,000 times',
        unit: 'µs',
        better: 'lower',
        contenders: [
          reads(WARM, scale, () => access.get()),
          reads('await a property', scale, () => plain.token),
          {
            name: 'a property',
            measure: async () => ({ value: propertyReads(plain, sized(scale, 100_000)) }),
          },
        ],
        targets: [{ text: 'at most 1 µs', of: 'value', subject: WARM, at: 'most', bound: 1 }],
      },
      {
        title: '10,000 calls of an application that has no token yet, all at once',
        unit: 'requests',
        better: 'lower',
        contenders: [coldCallers(service, sized(scale, 10_000))],
        targets: [{ text: 'exactly 1', of: 'value', subject: COLD, at: 'most', bound: 1 }],
        rounds: 1,
        warmUp: 0,
      },
    ];
  },
};

function reads(name: string, scale: Scale, read: () => unknown): Contender {
  const count = sized(scale, 100_000);
  return {
    name,
    async measure() {
      const start = performance.now();
      for (let left = count; left > 0; left -= 1) await read();
      return { value: ((performance.now() - start) / count) * 1000 };
    },
  };
}

function propertyReads(plain: { token: string }, count: number): number {
  let length = 0;
  const start = performance.now();
  for (let left = count; left > 0; left -= 1) length += plain.token.length;
  const us = ((performance.now() - start) / count) * 1000;
  if (length === 0) throw new Error('No property was read.');
  return us;
}

function coldCallers(service: CommandProcess, callers: number): Contender {
  return {
    name: COLD,
    async measure() {
      const baseUrl = service.ready as string;
      const app = await startChild('apps/api-client.ts', { caller: 'ours', baseUrl });
      try {
        await service.request('tokenRequests');
        await app.request('cold', callers);
        const asked = await service.request<number>('tokenRequests');
        if (asked === 0) throw new Error('There was no token request.');
        return { value: asked };
      } finally {
        await app.stop();
      }
    },
  };
}
