import { join } from 'node:path';
import { NO_OBSERVERS } from '../../libs/payments/dist/telemetry/observers.js';
import type { ObserverChoice } from '../apps/observers.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row, Scale, Table } from '../rounds/row.ts';
import { atMost, sized } from '../rounds/row.ts';
import { temporaryFolder } from './shared/create-temporary-storage.ts';

const NONE = 'without observers';
const OTEL = 'openTelemetry()';
const CHOICES: readonly (readonly [string, ObserverChoice])[] = [
  [OTEL, 'openTelemetry'],
  ['openTelemetry(), 10% of the spans sampled', 'sampled'],
  ['openTelemetry(), metrics only', 'metrics'],
  ['an observer that does nothing', 'empty'],
  ['without observers; the handler calls the SDK', 'sdk'],
  [NONE, 'none'],
];

/** Number of warm-up rounds, because V8 compiles code until about 48,000 deliveries have run. */
const WARM_UP = 8;

/** Number of checks for observers per event that is received and handled: two on receipt, one for the attempt. */
const CHECKS = 3;
const CHECK_TIMES = 2_000_000;

/** Measures TE-06: the costs of telemetry. */
export const telemetry: Row = {
  name: 'telemetry',
  title: 'Telemetry',
  rounds: 9,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    const receivers = await receiving(folder, scale, ending);
    const without = receivers.at(-1)!;
    return [
      {
        title: 'Receiving and handling, SQLite, Express: processor time of an event',
        unit: 'µs',
        better: 'lower',
        contenders: receivers,
        targets: [atMost(1.05, OTEL, NONE, 'at most 1.05 times the time without observers')],
        warmUp: WARM_UP,
        notes: [
          'The processor time is that of all threads of the process. The SDK of OpenTelemetry creates the ' +
            'spans and metrics. Every span is sampled, except in the line with 10% of the spans and the line ' +
            'with metrics only. The SDK collects sampled spans in batches. The benchmark discards ' +
            'these batches instead of exporting them, so that the figures do not contain the costs of an exporter.',
          'In the line "the handler calls the SDK", the handler makes the same calls as `openTelemetry()` for ' +
            'each event: two spans and five measurements. Objects that do not depend on the event are created ' +
            'once, before the measurement. The difference between this line and the last line is the cost of the ' +
            'SDK alone.',
        ],
      },
      checksTable(without),
    ];
  },
};

async function receiving(
  folder: string,
  scale: Scale,
  ending: AsyncDisposableStack,
): Promise<Contender[]> {
  const load = await startLoad(ending);
  const order = { scheme: 'payments', count: sized(scale, 4000), connections: 64 } as const;
  const contenders: Contender[] = [];
  for (const [name, observers] of CHOICES) {
    const inbox = { kind: 'sqlite', file: join(folder, `receive-${observers}.db`) };
    const setup = { adapter: 'express', inbox, observers };
    const server = await startChild('apps/payments.ts', setup);
    ending.defer(() => server.stop());
    contenders.push(processorTime(underLoad(name, server, load, order, true)));
  }
  return contenders;
}

/** Returns a contender that measures the processor time of an event in microseconds. */
function processorTime(throughput: Contender): Contender {
  return {
    name: throughput.name,
    async measure() {
      const { more } = await throughput.measure();
      return { value: more!['cpuMsPerEvent']! * 1000, more: more! };
    },
  };
}

/**
 * Measures the only cost of telemetry if there are no observers: the checks for observers. A comparison is not
 * possible, because there is no build without telemetry.
 */
function checksTable(without: Contender): Table {
  return {
    title: 'Without observers: share of the checks for observers in the processor time of an event',
    unit: '%',
    better: 'lower',
    rounds: 5,
    contenders: [
      {
        name: NONE,
        async measure() {
          const { value: eventUs } = await without.measure();
          const checksUs = CHECKS * checkUs();
          return { value: (checksUs / eventUs) * 100 };
        },
      },
    ],
    targets: [{ text: 'at most 1%', of: 'value', subject: NONE, at: 'most', bound: 1 }],
    notes: [
      `For each event that is received and handled, the module checks ${CHECKS} times whether there are observers. The ` +
        'last table shows the time of these checks without observers, measured in a loop, as a share of the processor ' +
        'time of the event.',
    ],
  };
}

/** Returns the microseconds of one check, including the loop around the checks. */
function checkUs(): number {
  let found = 0;
  const start = performance.now();
  for (let check = 0; check < CHECK_TIMES; check += 1) {
    if (NO_OBSERVERS.active) found += 1;
  }
  const tookMs = performance.now() - start;
  if (found > 0) throw new Error('There are no observers, and a check has found one.');
  return (tookMs * 1000) / CHECK_TIMES;
}
