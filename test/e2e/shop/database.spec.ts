import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import { PostgresShopDatabase } from '../../../apps/shop/src/database/postgres-shop-database.js';
import type { ShopDatabase } from '../../../apps/shop/src/database/shop-database.js';
import { SqliteShopDatabase } from '../../../apps/shop/src/database/sqlite-shop-database.js';
import { startPostgres } from '../../support/postgres/postgres-server.js';

/** A database of the shop, and another connection to it. */
interface OpenDatabase {
  readonly database: ShopDatabase;
  /** The transaction argument of `recordPayment()`. */
  readonly tx: unknown;
  readonly run: (statement: 'BEGIN' | 'COMMIT' | 'ROLLBACK') => unknown;
}

async function sqlite(ending: AsyncDisposableStack): Promise<OpenDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'shop-database-'));
  ending.defer(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'shop.db');
  const database = await SqliteShopDatabase.open(file);
  ending.defer(() => database.onApplicationShutdown());
  const tx = new DatabaseSync(file);
  ending.defer(() => tx.close());
  return { database, tx, run: (statement) => tx.exec(statement) };
}

async function postgres(ending: AsyncDisposableStack): Promise<OpenDatabase> {
  const server = await startPostgres();
  ending.defer(() => server.end());
  const url = await server.createDatabase();
  const database = await PostgresShopDatabase.open(url);
  ending.defer(() => database.onApplicationShutdown());
  const tx = new Client({ connectionString: url });
  await tx.connect();
  ending.defer(() => tx.end());
  return { database, tx, run: (statement) => tx.query(statement) };
}

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('the database of a shop on %s', (_, open) => {
  it('IN-21 the ledger has no entry after a rollback of the transaction', async () => {
    await using ending = new AsyncDisposableStack();
    const { database, tx, run } = await open(ending);
    const payment = { transactionId: 't-1', reference: null, amount: 10, foundByPoll: false };
    for (const [end, entries] of [
      ['ROLLBACK', []],
      ['COMMIT', [{ transactionId: 't-1', amount: 10 }]],
    ] as const) {
      await run('BEGIN');
      expect(await database.recordPayment(tx, payment)).toMatchObject({ transactionId: 't-1' });
      await run(end);
      const recorded = await database.ledgerEntries();
      expect(recorded).toHaveLength(entries.length);
      expect(recorded).toMatchObject(entries);
    }
  });

  it('EX-13 no order is stored if its expectation is not stored', async () => {
    await using ending = new AsyncDisposableStack();
    const { database } = await open(ending);
    const order = { reference: 'o-1', amount: 10 };
    const failing = database.addOrder(order, () => Promise.reject(new Error('not stored')));
    await expect(failing).rejects.toThrow('not stored');
    expect(await database.findOrders(['o-1'])).toEqual([]);
    const transactions: unknown[] = [];
    const expectPayment = async (own: unknown) => transactions.push(own);
    expect(await database.addOrder(order, expectPayment)).toMatchObject(order);
    expect(await database.addOrder({ ...order, amount: 11 }, expectPayment)).toMatchObject(order);
    expect(transactions).toHaveLength(1);
  });
});
