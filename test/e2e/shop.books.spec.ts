import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import type { Books } from '../../apps/shop/src/books/books.js';
import { PostgresBooks } from '../../apps/shop/src/books/postgres.books.js';
import { SqliteBooks } from '../../apps/shop/src/books/sqlite.books.js';
import { startPostgres } from '../support/postgres.server.js';

/** Books of a shop, and another connection to their database. */
interface OpenBooks {
  readonly books: Books;
  /** What `Books.book()` gets as its transaction. */
  readonly tx: unknown;
  readonly run: (statement: 'BEGIN' | 'COMMIT' | 'ROLLBACK') => unknown;
}

async function sqlite(ending: AsyncDisposableStack): Promise<OpenBooks> {
  const folder = mkdtempSync(join(tmpdir(), 'shop-books-'));
  ending.defer(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'shop.db');
  const books = await SqliteBooks.open(file);
  ending.defer(() => books.onApplicationShutdown());
  const tx = new DatabaseSync(file);
  ending.defer(() => tx.close());
  return { books, tx, run: (statement) => tx.exec(statement) };
}

async function postgres(ending: AsyncDisposableStack): Promise<OpenBooks> {
  const server = await startPostgres();
  ending.defer(() => server.end());
  const url = await server.createDatabase();
  const books = await PostgresBooks.open(url);
  ending.defer(() => books.onApplicationShutdown());
  const tx = new Client({ connectionString: url });
  await tx.connect();
  ending.defer(() => tx.end());
  return { books, tx, run: (statement) => tx.query(statement) };
}

describe.each([
  ['SQLite', sqlite],
  ['PostgreSQL', postgres],
])('the books of a shop on %s', (_, open) => {
  it('IN-21 have no entry of a booking whose transaction is rolled back', async () => {
    await using ending = new AsyncDisposableStack();
    const { books, tx, run } = await open(ending);
    const payment = { transactionId: 't-1', reference: null, amount: 10 };
    for (const [end, entries] of [
      ['ROLLBACK', []],
      ['COMMIT', [{ transactionId: 't-1', amount: 10 }]],
    ] as const) {
      await run('BEGIN');
      expect(await books.book(tx, payment)).toMatchObject({ transactionId: 't-1' });
      await run(end);
      const booked = await books.entries();
      expect(booked).toHaveLength(entries.length);
      expect(booked).toMatchObject(entries);
    }
  }, 60_000);
});
