import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { delivery } from '../load/deliveries.ts';
import { startLoad, underLoad } from '../load/load-generator.ts';
import { Child } from '../processes/child.ts';
import type { Contender, Row } from '../rounds/row.ts';
import { atLeast, sized } from '../rounds/row.ts';
import { temporaryFolder } from './temporary-storage.ts';

const OURS = 'SQLite inbox';
const UNHANDLED = 'SQLite inbox, its worker paused';
const MEMORY = 'memory inbox';
const RAW = 'node:sqlite, groups of 50, no HTTP';

// Rounds before the first measurement: V8 compiles the code until about 48,000 deliveries have run.
const WARM_UP = 8;

export const receiveSqlite: Row = {
  name: 'receive-sqlite',
  title: 'Receiving, SQLite inbox, Express',
  rounds: 9,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    const sqlite = (name: string) => ({ kind: 'sqlite', file: join(folder, `${name}.db`) });
    const adapter = 'express';
    const [ours, unhandled, memory] = await Promise.all([
      Child.start('apps/payments.ts', { adapter, inbox: sqlite('ours') }),
      Child.start('apps/payments.ts', { adapter, inbox: sqlite('paused'), works: false }),
      Child.start('apps/payments.ts', { adapter, inbox: { kind: 'memory' } }),
    ]);
    for (const server of [ours, unhandled, memory]) ending.defer(() => server.end());
    const load = await startLoad(ending);
    const count = sized(scale, 4000);
    const order = { scheme: 'payments', count, connections: 64 } as const;
    const raw = rawInserts(join(folder, 'raw.db'), count);
    ending.defer(() => raw.close());
    return [
      {
        id: 'receive-sqlite',
        title: 'Responses to webhook requests, 64 connections',
        unit: 'events/s',
        better: 'higher',
        warmUp: WARM_UP,
        contenders: [
          underLoad(OURS, ours, load, order, true),
          underLoad(UNHANDLED, unhandled, load, order),
          underLoad(MEMORY, memory, load, order),
          raw,
        ],
        targets: [atLeast(0.85, OURS, MEMORY, 'at least 0.85 of the memory inbox')],
        notes: [
          'Each response means that the event is on the disk, fsync included. Handlers run meanwhile, in the same ' +
            'process, except in the second line. The last line inserts the same bodies, prepared, from the thread ' +
            'that prepares them: the limit of SQLite on this disk.',
        ],
      },
    ];
  },
};

/** The limit: inserts id and body of 50 events per transaction, with write-ahead log and `synchronous = FULL`. */
function rawInserts(file: string, count: number): Contender & { close(): void } {
  const db = new DatabaseSync(file);
  db.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
     CREATE TABLE event (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, raw BLOB NOT NULL) STRICT`,
  );
  const insert = db.prepare('INSERT INTO event (id, raw) VALUES (?, ?)');
  return {
    name: RAW,
    close: () => db.close(),
    async measure() {
      const bodies = Array.from({ length: count }, () => delivery('payments').body);
      const start = performance.now();
      for (let from = 0; from < count; from += 50) {
        db.exec('BEGIN IMMEDIATE');
        for (const body of bodies.slice(from, from + 50)) {
          insert.run((JSON.parse(body.toString()) as { id: string }).id, body);
        }
        db.exec('COMMIT');
      }
      return { value: (count / (performance.now() - start)) * 1000 };
    },
  };
}
