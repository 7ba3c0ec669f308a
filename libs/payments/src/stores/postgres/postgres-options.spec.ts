import { describe, expect, it } from '@jest/globals';
import { Pool } from 'pg';
import { loadPgDriver } from './connection/connection-source.js';
import { postgresInbox } from './postgres-inbox.js';
import type { PostgresInboxOptions } from './postgres-options.js';
import { resolvePostgresOptions } from './postgres-options.js';

describe('options of postgresInbox', () => {
  it('resolved options are complete and frozen', () => {
    const resolved = resolvePostgresOptions({ connectionString: 'postgres://localhost/shop' });
    expect(resolved).toEqual({
      connectionString: 'postgres://localhost/shop',
      pool: undefined,
      runTransaction: undefined,
      schema: 'payments_inbox',
      poolSize: 12,
      statementTimeoutMs: 10_000,
      connectTimeoutMs: 5000,
      startTimeoutMs: 30_000,
      pollMs: 5000,
      preparedStatements: true,
    });
    expect(Object.isFrozen(resolved)).toBe(true);
  });

  it('postgresInbox prepares no statements on an application pool, unless preparedStatements is true', () => {
    const pool = new Pool();
    expect(resolvePostgresOptions({ pool }).preparedStatements).toBe(false);
    const enabled = resolvePostgresOptions({ pool, preparedStatements: true });
    expect(enabled.preparedStatements).toBe(true);
    const disabled = resolvePostgresOptions({ preparedStatements: false });
    expect(disabled.preparedStatements).toBe(false);
  });

  const wrong: [string, unknown, RegExp][] = [
    ['connectionString with pool', { connectionString: 'x', pool: new Pool() }, /not both/],
    ['a pool that is no Pool', { pool: {} }, /a Pool of the "pg" package/],
    ['a connection string that is a number', { connectionString: 5 }, /must be a text/],
    ['a schema with a quote', { schema: 'a"b' }, /1 to 63 of a-z/],
    ['a schema that is too long', { schema: 'a'.repeat(64) }, /1 to 63 of a-z/],
    ['a schema of PostgreSQL', { schema: 'pg_catalog' }, /a schema of PostgreSQL itself/],
    ['a pool that is too small', { poolSize: 2 }, /from 3 to 500/],
    [
      'a statement timeout in seconds',
      { statementTimeoutMs: 5 },
      /milliseconds from 100 to 600000/,
    ],
    ['preparedStatements that is a text', { preparedStatements: 'no' }, /must be true or false/],
    ['an option that does not exist', { poolsize: 5 }, /no option "postgresInbox\.poolsize"/],
    ['runTransaction that is no function', { runTransaction: {} }, /must be a function/],
  ];
  it.each(wrong)('postgresInbox rejects %s', (_option, options, message) => {
    expect(() => postgresInbox(options as PostgresInboxOptions)).toThrow(message);
  });

  it('a store that is not open has no connection and rejects operations', async () => {
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

  it('the error for a missing driver names the package to install', async () => {
    const missing = Object.assign(new Error('Cannot find package pg'), {
      code: 'ERR_MODULE_NOT_FOUND',
    });
    await expect(loadPgDriver(() => Promise.reject(missing))).rejects.toThrow(/npm install pg/);
    const broken = new SyntaxError('in the driver');
    await expect(loadPgDriver(() => Promise.reject(broken))).rejects.toBe(broken);
  });
});
