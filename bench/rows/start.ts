import type { StartWith } from '../apps/startup.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';

const WITH = 'with nestjs-payments';
const WITHOUT = 'without nestjs-payments';
const OTHERS = 'with @nestjs/axios, @nestjs/config and class-validator alone';

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
        started(OTHERS, 'others'),
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
        'The time includes all modules that are loaded before the application listens. nestjs-payments loads undici ' +
          'when it calls the payments service for the first time.',
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
