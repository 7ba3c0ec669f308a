import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresServer } from 'test-postgres';
import type { Row } from '../rounds/row.ts';
import {
  claim,
  incoming,
  receive,
  register,
  systemRuntime,
} from './shared/run-store-operations.ts';
import { growthTables, sizesOf } from './shared/measure-growth.ts';
import type { GrownStore } from './shared/measure-growth.ts';
import { ownPostgres } from './shared/create-temporary-storage.ts';

const SCHEMA = 'payments_inbox';

export const growthPostgres: Row = {
  name: 'growth-postgres',
  title: 'A PostgreSQL inbox that grows',
  rounds: 9,
  async open(scale, ending) {
    const server = await ownPostgres(ending);
    const stores: GrownStore[] = [];
    for (const events of sizesOf(scale)) {
      const url = await server.createDatabase();
      const options = { connectionString: url, statementTimeoutMs: 60_000 };
      const store = postgresInbox(options).create(systemRuntime);
      await store.open();
      ending.defer(() => store.close());
      const worker = await register(store);
      await receive(store, [incoming()]);
      for (const lease of await claim(store, worker, 1)) await store.complete(lease);
      await copy(server, url, events - 1);
      const [row] = await server.query<{ bytes: string }>(
        url,
        'SELECT pg_database_size(current_database())::text AS bytes',
      );
      stores.push({ events, store, worker, bytes: Number(row!.bytes) });
    }
    return growthTables(
      stores,
      'The PostgreSQL server has its default settings, including 128 MB of shared buffers.',
    );
  },
};

/**
 * Copies the first row of each table `count` times with new ids and keys, and then runs `VACUUM`, as autovacuum would.
 *
 * @param values SQL expressions for columns of the copies
 */
export async function copy(
  server: PostgresServer,
  url: string,
  count: number,
  values: Readonly<Record<string, string>> = {},
  tables: readonly string[] = ['event', 'delivery'],
): Promise<void> {
  const own: Record<string, string> = {
    seq: 't.seq + n',
    event: 't.event + n',
    id: 'gen_random_uuid()::text',
    ordering_key: 'gen_random_uuid()::text',
    ordering: 'gen_random_uuid()',
    digest: 'sha256(gen_random_uuid()::text::bytea)',
    ...values,
  };
  for (const table of tables) {
    const rows = await server.query<{ name: string }>(
      url,
      `SELECT column_name AS name FROM information_schema.columns
        WHERE table_schema = '${SCHEMA}' AND table_name = '${table}'`,
    );
    const columns = rows.map(({ name }) => name);
    const copied = columns.map((column) => own[column] ?? `t.${column}`);
    await server.query(
      url,
      `INSERT INTO ${SCHEMA}.${table} (${columns.join(', ')})
       SELECT ${copied.join(', ')}
         FROM (SELECT * FROM ${SCHEMA}.${table} LIMIT 1) t, generate_series(1, ${count}) n`,
    );
  }
  await server.query(
    url,
    `SELECT setval(pg_get_serial_sequence('${SCHEMA}.${tables[0]}', 'seq'), (SELECT max(seq) FROM ${SCHEMA}.${tables[0]}))`,
  );
  await server.query(url, 'VACUUM ANALYZE');
  await server.query(url, 'CHECKPOINT');
}
