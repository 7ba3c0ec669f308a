import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { jobsPerSecond, startWorkers } from '../queues/queue.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';
import { temporaryFolder } from './shared/create-temporary-storage.ts';
import { fill, openedSqlite, paymentsQueue } from './shared/payments-queue.ts';

const OURS = 'nestjs-payments';
const MANY = 'nestjs-payments, concurrency 200';
const LOOP = 'a loop of the same writes, 20 at a time';
const LOOP_MANY = 'a loop of the same writes, 200 at a time';

export const workSqlite: Row = {
  name: 'work-sqlite',
  title: 'From stored to handled, SQLite',
  rounds: 7,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    // With this many events, the quarter of a second until the store looks for deliveries hardly counts.
    const count = sized(scale, 20_000);
    const contenders: Contender[] = [];
    for (const [name, concurrency] of [
      [OURS, 20],
      [MANY, 200],
    ] as const) {
      const file = join(folder, `${concurrency}.db`);
      const config = { inbox: { kind: 'sqlite', file }, concurrency } as const;
      const queue = paymentsQueue(name, await openedSqlite(file, ending), config);
      contenders.push(jobsPerSecond(queue, await startWorkers(queue, ending, 1), count));
    }
    for (const [name, group] of [
      [LOOP, 20],
      [LOOP_MANY, 200],
    ] as const) {
      const file = join(folder, `loop-${group}.db`);
      contenders.push(await plainLoop(name, file, group, count, ending));
    }
    return [
      {
        title: 'One process, handlers that do nothing',
        unit: 'events/s',
        better: 'higher',
        contenders,
        targets: [
          atLeast(0.5, OURS, LOOP, 'at least 0.5 of a plain loop of the same writes'),
          atLeast(0.5, MANY, LOOP_MANY, 'at least 0.5 of the loop, 200 at a time'),
        ],
        notes: [
          'The loop makes the same two changes of each delivery as nestjs-payments, in the same tables and ' +
            'indexes. One database transaction leases a group of deliveries, the loop parses their bodies, and ' +
            'the next database transaction marks all of them as done. Each database transaction waits until its ' +
            'changes are on the disk. The loop keeps no order, does not handle lost leases, stores no history, and runs without other workers.',
        ],
      },
    ];
  },
};

async function plainLoop(
  name: string,
  file: string,
  group: number,
  count: number,
  ending: AsyncDisposableStack,
): Promise<Contender> {
  const store = await openedSqlite(file, ending);
  const db = new DatabaseSync(file);
  ending.defer(() => db.close());
  // The store that fills the file stays open, and also accesses the file during the measurement.
  db.exec('PRAGMA busy_timeout = 5000; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON');
  const due = db.prepare(
    `SELECT event, raw FROM payments_inbox_delivery JOIN payments_inbox_body USING (event)
     WHERE handler = 'book' AND queue = 'due'
     ORDER BY due_at, event LIMIT ${group}`,
  );
  const change = `UPDATE payments_inbox_delivery SET`;
  const where = `WHERE event = ? AND handler = 'book'`;
  const lease = db.prepare(
    `${change} state = 'running', worker = 'loop', queue = NULL, due_at = NULL, started_at = ?,
     attempts = attempts + 1, token = token + 1 ${where}`,
  );
  const done = db.prepare(`${change} state = 'done', worker = NULL, finished_at = ? ${where}`);
  const inTransaction = (work: () => void): void => {
    db.exec('BEGIN IMMEDIATE');
    work();
    db.exec('COMMIT');
  };
  return {
    name,
    async measure() {
      await fill(store, count);
      const start = performance.now();
      let handled = 0;
      while (handled < count) {
        const now = Date.now();
        const rows = due.all() as { event: number; raw: Uint8Array }[];
        inTransaction(() => rows.forEach(({ event }) => lease.run(now, event)));
        for (const { raw } of rows) JSON.parse(Buffer.from(raw).toString());
        inTransaction(() => rows.forEach(({ event }) => done.run(now, event)));
        handled += rows.length;
      }
      return { value: (count / (performance.now() - start)) * 1000 };
    },
  };
}
