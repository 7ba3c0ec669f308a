import { describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { loadDriver } from './connection/driver-loader.js';
import { postgresInbox } from './postgres-inbox.js';
import type { PostgresInboxOptions } from './postgres-options.js';
import { resolvePostgresOptions } from './postgres-options.js';

describe('postgresInbox options', () => {
  it('are complete and frozen, with their defaults', () => {
    const resolved = resolvePostgresOptions({ connectionString: 'postgres://localhost/shop' });
    expect(resolved).toEqual({
      connectionString: 'postgres://localhost/shop',
      pool: undefined,
      runTransaction: undefined,
      schema: 'payments_inbox',
      poolSize: 12,
      statementTimeoutMs: 10_000,
      connectTimeoutMs: 5000,
      pollMs: 5000,
      preparedStatements: true,
    });
    expect(Object.isFrozen(resolved)).toBe(true);
  });

  it('prepare nothing on a pool of the application, unless it says so', () => {
    const pool = new Pool();
    expect(resolvePostgresOptions({ pool }).preparedStatements).toBe(false);
    const asked = resolvePostgresOptions({ pool, preparedStatements: true });
    expect(asked.preparedStatements).toBe(true);
    const refused = resolvePostgresOptions({ preparedStatements: false });
    expect(refused.preparedStatements).toBe(false);
  });

  const wrong: [string, unknown, RegExp][] = [
    ['both ways to connect', { connectionString: 'x', pool: new Pool() }, /not both/],
    ['a pool that is none', { pool: {} }, /a Pool of the "pg" package/],
    ['a connection string that is none', { connectionString: 5 }, /must be a text/],
    ['a schema with a quote', { schema: 'a"b' }, /1 to 63 of a-z/],
    ['a schema that is too long', { schema: 'a'.repeat(64) }, /1 to 63 of a-z/],
    ["PostgreSQL's own schema", { schema: 'pg_catalog' }, /PostgreSQL's own/],
    ['a pool that is too small', { poolSize: 2 }, /from 3 to 500/],
    ['a time-out in seconds', { statementTimeoutMs: 5 }, /milliseconds from 100 to 600000/],
    ['prepared statements by a word', { preparedStatements: 'no' }, /must be true or false/],
    ['a runner that is none', { runTransaction: {} }, /must be a function/],
  ];
  it.each(wrong)('refuse %s', (_what, options, message) => {
    expect(() => postgresInbox(options as PostgresInboxOptions)).toThrow(message);
  });

  it('connect to nothing before the store is opened, and reject what is asked before', async () => {
    const definition = postgresInbox({ connectionString: 'postgres://127.0.0.1:1/none' });
    expect(definition.name).toBe('postgres');
    const store = definition.create({
      now: Date.now,
      monotonic: () => 0,
      random: () => 0,
      schedule: () => () => {},
    });
    await expect(store.stats()).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await store.close();
  });

  it('name the package to install where the driver is missing', async () => {
    const missing = Object.assign(new Error('Cannot find package pg'), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
    await expect(loadDriver(() => Promise.reject(missing))).rejects.toThrow(/npm install pg/);
    const broken = new SyntaxError('in the driver');
    await expect(loadDriver(() => Promise.reject(broken))).rejects.toBe(broken);
  });
});
