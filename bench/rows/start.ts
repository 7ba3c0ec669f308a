import type { StartWith } from '../apps/startup.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';

const WITH = 'with nestjs-payments';
const WITHOUT = 'without';
const PEERS = 'with @nestjs/axios, @nestjs/config and class-validator alone';

export const start: Row = {
  name: 'start',
  title: 'Starting an application of 200 providers',
  rounds: 11,
  open: async () => [
    {
      title: 'From the start of its process until it listens',
      unit: 'ms',
      better: 'lower',
      contenders: [
        started(WITH, 'payments'),
        started(WITHOUT, 'nothing'),
        started(PEERS, 'its-peers'),
      ],
      targets: [
        {
          text: 'at most 80 ms more than without',
          of: 'difference',
          subject: WITH,
          against: WITHOUT,
          at: 'most',
          bound: 80,
        },
      ],
      notes: [
        'All modules that are loaded before the application listens are included. nestjs-payments loads axios, ' +
          '@nestjs/axios and undici with its first call. In the third line they are loaded at boot, as in most applications.',
      ],
    },
  ],
};

function started(name: string, kind: StartWith): Contender {
  return {
    name,
    async measure() {
      const app = await startChild('apps/startup.ts', { with: kind });
      await app.stop();
      return { value: app.ready as number };
    },
  };
}
