import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { loadDriver, SqliteConnection } from './thread/connection.js';
import { migrate } from './migrate.js';

let connection: SqliteConnection;
beforeEach(async () => {
  connection = new SqliteConnection(new (await loadDriver())(':memory:'));
});
afterEach(() => connection.close());

const names = () =>
  connection
    .all<{ name: string }>("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'")
    .map(({ name }) => name);

describe('the tables of the SQLite inbox', () => {
  it('the tables of the SQLite inbox are created once, and all have the prefix of the package', () => {
    migrate(connection, 100);
    connection.run('UPDATE payments_inbox_meta SET catalog_version = 7');
    migrate(connection, 100);
    expect(connection.get('SELECT catalog_version FROM payments_inbox_meta')).toMatchObject({
      catalog_version: 7,
    });
    expect(names().length).toBeGreaterThan(20);
    expect(names().filter((name) => !name.startsWith('payments_inbox_'))).toEqual([]);
  });

  it('the tables of the SQLite inbox are created next to the tables of the application', () => {
    connection.exec('CREATE TABLE payments (id TEXT); CREATE TABLE paymentsXinboxX (id TEXT)');
    migrate(connection, 100);
    expect(names()).toContain('payments_inbox_event');
  });

  it('the tables of the SQLite inbox reject a delivery that no queue contains', () => {
    migrate(connection, 100);
    connection.exec('PRAGMA foreign_keys = OFF');
    const insert = (columns: string) =>
      connection.exec(
        `INSERT INTO payments_inbox_delivery (event, handler, due_at, state, queue, ordering)
         VALUES (1, 'book', 1, ${columns})`,
      );
    expect(() => insert("'pending', NULL, x'00'")).toThrow('CHECK constraint');
    expect(() => insert("'pending', 'dead', x'00'")).toThrow('CHECK constraint');
    // Without an ordering key, no other delivery would end its wait.
    expect(() => insert("'pending', 'waiting', NULL")).toThrow('CHECK constraint');
    insert("'pending', 'waiting', x'00'");
  });

  it('the tables of the SQLite inbox are rejected if another version of the package created them', () => {
    migrate(connection, 100);
    connection.run('UPDATE payments_inbox_meta SET version = 99');
    expect(() => migrate(connection, 100)).toThrow(
      'tables of version 99, made by a newer nestjs-payments',
    );
  });
});
