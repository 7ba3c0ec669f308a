import type { StartWith } from '../apps/startup.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';

const WITH = 'with nestjs-payments';
const WITHOUT = 'without nestjs-payments';
const PEERS = 'with @nestjs/axios, @nestjs/config and class-validator alone';

export const start: Row = {
  name: 'start',
  title: 'Starting an application of 200 providers',
  rounds: 11,
  open: async () => [
    {
      title: 'From the start of the process until the application listens',
      unit: 'ms',
      better: 'lower',
      contenders: [
        started(WITH, 'payments'),
        started(WITHOUT, 'nothing'),
        started(PEERS, 'its-peers'),
      ],
      targets: [
        {
          text: 'at most 80 ms more than without nestjs-payments',
          of: 'difference',
          subject: WITH,
          against: WITHOUT,
          at: 'most',
          bound: 80,
        },
      ],
      notes: [
        'The time includes all modules that are loaded before the application listens. nestjs-payments loads ' +
          'axios, @nestjs/axios and undici when it calls the payments service for the first time. In the third ' +
          'line, the application loads axios and @nestjs/axios at boot, as most applications do.',
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
