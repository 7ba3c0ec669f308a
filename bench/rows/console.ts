import { setTimeout as wait } from 'node:timers/promises';
import type { ConsoleQuestion } from '../apps/console.ts';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Contender, Row, Scale, Table } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { fillPostgres, fillSqlite, referenceOf } from './shared/fill-console-events.ts';
import { atMostMs, quantileOf } from './shared/measure-event-latency.ts';
import { connectionClock } from './shared/measure-postgres-usage.ts';
import { ownPostgres, temporaryFolder } from './shared/create-temporary-storage.ts';

const EVENTS = 1_000_000;
/** Number of times that each query runs in a round. */
const TIMES = 100;
/** The pages of the console load the overview every two seconds. */
const POLL_EVERY_MS = 2000;
const POLL_FOR_MS = 20_000;
const OPEN = 'while a console is open';
const CLOSED = 'without a console';

/** Measures the costs of the console with a million stored events. */
export const consoleRow: Row = {
  name: 'console',
  title: 'The console with many events',
  rounds: 3,
  async open(scale, ending) {
    const events = sized(scale, EVENTS);
    const server = await ownPostgres(ending);
    const folder = await temporaryFolder(ending);
    const url = await fillPostgres(server, events);
    const file = await fillSqlite(folder, events);
    const postgres = await startChild('apps/console.ts', { kind: 'postgres', url });
    ending.defer(() => postgres.stop());
    const sqlite = await startChild('apps/console.ts', { kind: 'sqlite', file });
    ending.defer(() => sqlite.stop());
    return [
      questionTable('PostgreSQL', postgres, events, scale),
      questionTable('SQLite', sqlite, events, scale),
      costTable('PostgreSQL', postgres, scale, () => connectionClock(server, url)),
      costTable('SQLite', sqlite, scale, async () => () => Promise.resolve(0)),
    ];
  },
};

/** Returns the queries of the console's pages, each with a name. */
function questionsFor(events: number): [string, Omit<ConsoleQuestion, 'times'>][] {
  const middle = Math.floor(events / 2) + 7;
  const search = (text: string, atLeast: number) => ({ list: { search: text }, atLeast });
  return [
    ['first page', { list: {}, atLeast: 50 }],
    ['first page of dead deliveries', { list: { state: 'dead' }, atLeast: 50 }],
    ['search for a reference', search(referenceOf(middle), 1)],
    // ORDER-1 is also the start of ORDER-10, ORDER-123456, and so on.
    ['search for the start of a ninth of all references', search(referenceOf(1), 0)],
    ['first request for a handler without events', { list: { handler: 'none' }, atLeast: 0 }],
    ['search that finds nothing', search('nothing has this text', 0)],
    ['failures', { atLeast: 4 }],
  ];
}

function questionTable(database: string, app: CommandProcess, events: number, scale: Scale): Table {
  const questions = questionsFor(events).map(([name, question]): Contender => ({
    name,
    measure: async () =>
      sampleOf(await app.request<number[]>('ask', { ...question, times: sized(scale, TIMES) })),
  }));
  const overview: Contender = {
    name: 'overview',
    async measure() {
      const taken: number[] = [];
      for (let left = sized(scale, 20); left > 0; left -= 1) {
        // The console caches the overview for a second.
        await wait(1100);
        taken.push(await loadOverview(app));
      }
      return sampleOf(taken);
    },
  };
  const contenders = [...questions, overview];
  return {
    title: `${database}: p95 of each query with ${events.toLocaleString('en')} events`,
    unit: 'ms',
    better: 'lower',
    contenders,
    targets: contenders.map(({ name }) => atMostMs(name, 100)),
    notes: [
      'The events belong to three companies. One event in 200 has a dead delivery, and one event in 2,000 has ' +
        'a delivery that waits for a retry.',
    ],
  };
}

function sampleOf(taken: readonly number[]) {
  const sorted = taken.toSorted((a, b) => a - b);
  return { value: quantileOf(sorted, 0.95) };
}

/** Loads the overview. @returns the milliseconds until the response has ended. */
async function loadOverview(app: CommandProcess): Promise<number> {
  const start = performance.now();
  const response = await fetch(app.ready as string);
  const text = await response.text();
  if (!response.ok) throw new Error(`The overview is ${response.status}: ${text}`);
  return performance.now() - start;
}

/** Compares the processor time of the application and of its database connections with and without an open console. */
function costTable(
  database: string,
  app: CommandProcess,
  scale: Scale,
  connections: () => Promise<() => Promise<number>>,
): Table {
  const cost = (name: string, poll: () => Promise<unknown>): Contender => ({
    name,
    async measure() {
      const ofConnections = await connections();
      const [before, start] = [(await app.usage()).cpuMs, performance.now()];
      const end = start + sized(scale, POLL_FOR_MS);
      let cpuMs = 0;
      while (performance.now() < end) {
        await poll();
        await wait(POLL_EVERY_MS);
        cpuMs = (await app.usage()).cpuMs - before + (await ofConnections());
      }
      return { value: (cpuMs / (performance.now() - start)) * 100 };
    },
  });
  return {
    title: `${database}: processor time as a share of one core`,
    unit: '%',
    better: 'lower',
    contenders: [cost(OPEN, () => loadOverview(app)), cost(CLOSED, () => Promise.resolve())],
    targets: [
      {
        text: 'an open console needs less than 1% of a core',
        of: 'difference',
        subject: OPEN,
        against: CLOSED,
        at: 'most',
        bound: 1,
      },
    ],
    notes: [
      'For PostgreSQL, the processor time includes the processes of the database server that serve the ' +
        'application.',
    ],
  };
}
