import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, afterEach, beforeAll, describe } from '@jest/globals';
import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { InboxDefinition, PaymentEventContext } from 'nestjs-payments';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import { postgresInbox } from 'nestjs-payments/postgres';
import type { PostgresTransaction } from 'nestjs-payments/postgres';
import { startPostgres } from '../postgres/postgres-server.js';
import type { PostgresServer } from '../postgres/postgres-server.js';

/** The data of one test: its inboxes, and the application's own table `effect`. */
export interface InboxData {
  /** Another inbox on the same data, as another process would have it. */
  inbox(): InboxDefinition;
  /** The setup with which `merchant.mjs` opens the same data. */
  readonly child: { readonly kind: string; readonly where: string; readonly schema: string };
  /** Writes an effect in a commit's transaction. */
  write(tx: unknown, effect: string): void | Promise<void>;
  /** The committed effects, in order. */
  effects(): Promise<string[]>;
  /** Advances the store's own clock by `ms` milliseconds. The clock of the test's runtime stays. */
  pass(ms: number): Promise<void>;
}

/** A kind of durable inbox that the tests run on. */
export interface DurableInbox {
  readonly kind: 'sqlite' | 'postgres';
  /** The PostgreSQL server. Throws for SQLite. */
  server(): PostgresServer;
  /** Creates new, empty data. */
  data(): Promise<InboxData>;
}

/** Declares the same tests for each kind of durable inbox. */
export function onEachDurableInbox(
  promises: (durable: DurableInbox) => void,
  kinds: readonly DurableInbox['kind'][] = ['sqlite', 'postgres'],
): void {
  describe.each(kinds)('on %s', (kind) =>
    promises(kind === 'sqlite' ? durableSqlite() : durablePostgres()),
  );
}

/** Writes an effect with `context.commit`. */
export function book(
  data: InboxData,
  context: PaymentEventContext,
  effect: string,
): Promise<unknown> {
  return context.commit((tx) => data.write(tx, effect));
}

/** SQLite. Call this function in a `describe` block. */
export function durableSqlite(): DurableInbox {
  const undo: (() => void)[] = [];
  afterEach(() => {
    for (const step of undo.splice(0).toReversed()) step();
  });
  return {
    kind: 'sqlite',
    server: () => {
      throw new Error('SQLite has no server');
    },
    data: async () => {
      const folder = mkdtempSync(join(tmpdir(), 'payments-inbox-'));
      const file = join(folder, 'inbox.db');
      undo.push(() => rmSync(folder, { recursive: true, force: true }));
      const own = new DatabaseSync(file);
      own.exec('PRAGMA busy_timeout = 5000; CREATE TABLE effect (id TEXT NOT NULL)');
      undo.push(() => own.close());
      return {
        // The oldest Node that is supported has an old SQLite.
        inbox: () => sqliteInbox({ file, allowOldSqlite: true, busyTimeoutMs: 2000 }),
        child: { kind: 'sqlite', where: file, schema: '' },
        write: (tx, effect) => {
          (tx as SqliteTransaction).prepare('INSERT INTO effect VALUES (?)').run(effect);
        },
        effects: async () =>
          Array.from(own.prepare('SELECT id FROM effect ORDER BY id').all(), ({ id }) =>
            String(id),
          ),
        // The store uses the clock of the test's runtime.
        pass: async () => {},
      };
    },
  };
}

/** PostgreSQL, with a server of its own. Call this function in a `describe` block. */
export function durablePostgres(): DurableInbox {
  let server: PostgresServer;
  let connectionString: string;
  let schemas = 0;
  beforeAll(async () => {
    server = await startPostgres();
    connectionString = await server.createDatabase();
  });
  afterAll(() => server.end(), 60_000);
  return {
    kind: 'postgres',
    server: () => server,
    data: async () => {
      schemas += 1;
      const schema = `inbox_${schemas}`;
      const query = <R>(text: string) => server.query<R>(connectionString, text);
      await query(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.effect (id text NOT NULL)`);
      return {
        inbox: () =>
          postgresInbox({
            connectionString,
            schema,
            poolSize: 4,
            connectTimeoutMs: 4000,
            statementTimeoutMs: 3000,
            pollMs: 200,
          }),
        child: { kind: 'postgres', where: connectionString, schema },
        write: async (tx, effect) => {
          await (tx as PostgresTransaction).query(`INSERT INTO ${schema}.effect VALUES ($1)`, [
            effect,
          ]);
        },
        effects: async () => {
          const rows = await query<{ id: string }>(`SELECT id FROM ${schema}.effect ORDER BY id`);
          return rows.map(({ id }) => id);
        },
        // The store's clock is the server's, which a test cannot advance. So events and records move into the past.
        pass: async (ms) => {
          const earlier = (column: string) => `${column} = ${column} - ${ms}`;
          await query(
            `UPDATE ${schema}.event SET ${earlier('received_at')}, ${earlier('occurred_at')};
             UPDATE ${schema}.record SET ${earlier('changed_at')}`,
          );
        },
      };
    },
  };
}
