import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteConnection } from './sqlite.connection.js';
import { loadDriver } from './sqlite.driver.js';
import { migrate } from './sqlite.schema.js';

let connection: SqliteConnection;
beforeEach(async () => {
  connection = new SqliteConnection(new (await loadDriver())(':memory:'));
});
afterEach(() => connection.close());

const version = () =>
  connection.get<{ version: number }>('SELECT version FROM payments_inbox_schema')!.version;

describe('the migrations', () => {
  const first = 'CREATE TABLE a (x)';
  const second = 'CREATE TABLE b (x)';

  it('run once each, in order', () => {
    migrate(connection, 100, [first]);
    expect(version()).toBe(1);
    migrate(connection, 100, [first, second]);
    migrate(connection, 100, [first, second]);
    expect(version()).toBe(2);
  });

  it('change nothing where one of them fails', () => {
    migrate(connection, 100, [first]);
    expect(() => migrate(connection, 100, [first, second, 'CREATE TABLE a (x)'])).toThrow(
      'already exists',
    );
    expect(version()).toBe(1);
    expect(() => connection.all('SELECT * FROM b')).toThrow('no such table');
  });

  it('refuse tables that are newer than they are', () => {
    migrate(connection, 100, [first, second]);
    expect(() => migrate(connection, 100, [first])).toThrow('tables of version 2');
  });

  it('give every table and index the prefix of the package', () => {
    migrate(connection, 100);
    const names = connection.all<{ name: string }>(
      "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'",
    );
    expect(names.length).toBeGreaterThan(10);
    expect(names.filter(({ name }) => !name.startsWith('payments_inbox_'))).toEqual([]);
  });
});
