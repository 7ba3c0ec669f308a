import { join } from 'node:path';
import { Client } from 'pg';
import type { InboxChoice } from '../apps/payments-options.ts';
import type { CommandProcess } from '../../test/support/processes/command-process.ts';
import { startChild } from '../processes/child.ts';
import type { Row, Scale, Table } from '../rounds/row.ts';
import { sized } from '../rounds/row.ts';
import { atMostMs, latencies, PER_SECOND, quantileOf } from './shared/measure-event-latency.ts';
import { ownPostgres, temporaryFolder } from './shared/create-temporary-storage.ts';

/** Minutes for which another transaction stays open. For the ten minutes of IN-39, set BENCH_OPEN_MINUTES=10. */
const OPEN_MINUTES = Number(process.env['BENCH_OPEN_MINUTES'] ?? 4);
const MEDIAN = 'p50';
const P99 = 'p99';

export const latencyPostgres: Row = {
  name: 'latency-postgres',
  title: 'From sending to handled, PostgreSQL',
  rounds: 3,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const url = await server.createDatabase();
    const app = await start({ kind: 'postgres', url }, ending);
    return [
      steadyTable(app, scale),
      {
        title: `${PER_SECOND} events/s, worst of ${OPEN_MINUTES} minutes with an open database transaction`,
        unit: 'ms',
        better: 'lower',
        rounds: 1,
        warmUp: 0,
        contenders: [
          { name: P99, measure: () => withOpenTransaction(url, () => worstMinute(app, scale)) },
        ],
        targets: [atMostMs(P99, 50)],
      },
    ];
  },
};

export const latencySqlite: Row = {
  name: 'latency-sqlite',
  title: 'From sending to handled, SQLite',
  rounds: 3,
  async open(scale, ending) {
    const file = join(await temporaryFolder(ending), 'inbox.db');
    const notes = ['Each event is on the disk, fsync included, before its handler is called.'];
    return [{ ...steadyTable(await start({ kind: 'sqlite', file }, ending), scale), notes }];
  },
};

async function start(inbox: InboxChoice, ending: AsyncDisposableStack): Promise<CommandProcess> {
  const app = await startChild('apps/payments-latency.ts', { inbox });
  ending.defer(() => app.stop());
  return app;
}

function steadyTable(app: CommandProcess, scale: Scale): Table {
  const percentile = (name: string, share: number) => ({
    name,
    measure: async () => ({
      value: quantileOf(await latencies(app, sized(scale, 10) * 1000), share),
    }),
  });
  return {
    title: `${PER_SECOND} events/s`,
    unit: 'ms',
    better: 'lower',
    contenders: [percentile(MEDIAN, 0.5), percentile(P99, 0.99)],
    targets: [atMostMs(MEDIAN, 1.5), atMostMs(P99, 6)],
  };
}

/** Measures the 99th percentile of each minute, and returns the highest of these percentiles. */
async function worstMinute(app: CommandProcess, scale: Scale) {
  let value = 0;
  for (let minute = 1; minute <= OPEN_MINUTES; minute += 1) {
    value = Math.max(value, quantileOf(await latencies(app, sized(scale, 60) * 1000), 0.99));
  }
  return { value };
}

/** Runs `measure` while another transaction has a snapshot, so that PostgreSQL cannot remove dead rows. */
async function withOpenTransaction<T>(url: string, measure: () => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query('SELECT pg_current_xact_id()');
    return await measure();
  } finally {
    await client.end();
  }
}
