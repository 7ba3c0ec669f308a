import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { Row } from '../rounds/row.ts';
import { completeOne, register, systemRuntime } from './shared/run-store-operations.ts';
import { growthTables, sizesOf } from './shared/measure-growth.ts';
import type { GrownStore } from './shared/measure-growth.ts';
import { temporaryFolder } from './shared/create-temporary-storage.ts';

const STEP = 50_000;

export const growthSqlite: Row = {
  name: 'growth-sqlite',
  title: 'A SQLite inbox that grows',
  rounds: 9,
  async open(scale, ending) {
    const folder = await temporaryFolder(ending);
    const stores: GrownStore[] = [];
    for (const events of sizesOf(scale)) {
      const file = join(folder, `${events}.db`);
      await fill(file, events);
      const store = openSqlite(file);
      await store.open();
      ending.defer(() => store.close());
      const worker = await register(store);
      stores.push({ events, store, worker, bytes: statSync(file).size });
    }
    return growthTables(stores);
  },
};

export function openSqlite(file: string): InboxStore {
  return sqliteInbox({ file, allowOldSqlite: true }).create(systemRuntime);
}

/** Completes one event, and copies its rows with new ids and keys. */
async function fill(file: string, count: number): Promise<void> {
  await completeOne(openSqlite(file));
  copyRows(file, count, ['event', 'body', 'delivery']);
}

/**
 * Copies the rows of the first event in each table with new ids and keys, until each table contains `count` rows.
 *
 * @param values SQL expressions for columns of the copies
 */
export function copyRows(
  file: string,
  count: number,
  tables: readonly string[],
  values: Readonly<Record<string, string>> = {},
): void {
  const db = new DatabaseSync(file);
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -400000');
  const statements = tables.map((table) => copyStatement(db, `payments_inbox_${table}`, values));
  // Each transaction copies the first event at most STEP times. The first event is one of the `count` events.
  for (let first = 1; first < count; first += STEP) {
    const last = Math.min(count, first + STEP) - 1;
    db.exec('BEGIN');
    for (const statement of statements) db.prepare(statement).run(first, last);
    db.exec('COMMIT');
  }
  db.exec('ANALYZE');
  db.close();
}

function copyStatement(
  db: DatabaseSync,
  table: string,
  values: Readonly<Record<string, string>>,
): string {
  const random = 'lower(hex(randomblob(16)))';
  const own: Record<string, string> = {
    seq: 't.seq + i',
    event: 't.event + i',
    id: random,
    ordering_key: random,
    digest: 'randomblob(32)',
    ordering: 'randomblob(16)',
    ...values,
  };
  const columns = db
    .prepare('SELECT name FROM pragma_table_info(?)')
    .all(table)
    .map(({ name }) => String(name));
  const key = columns.includes('event') ? 'event' : 'seq';
  return `
    WITH RECURSIVE n (i) AS (SELECT ? UNION ALL SELECT i + 1 FROM n WHERE i < ?)
    INSERT INTO ${table} (${columns.join(', ')})
    SELECT ${columns.map((column) => own[column] ?? `t.${column}`).join(', ')}
      FROM n CROSS JOIN ${table} t WHERE t.${key} = 1`;
}
