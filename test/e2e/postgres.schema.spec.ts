import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

describe("the inbox's schema in PostgreSQL", () => {
  let inboxes: PostgresInboxes;
  let asClerk: string;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
    await inboxes.query(`CREATE ROLE clerk LOGIN PASSWORD 'clerk'`);
    const url = new URL(inboxes.connectionString);
    url.username = 'clerk';
    url.password = 'clerk';
    asClerk = url.href;
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(async () => {
    await inboxes.query('DROP OWNED BY clerk CASCADE; DROP ROLE clerk');
    await inboxes.server.end();
  }, 30_000);

  it('is set up once by instances that start at the same time', async () => {
    const schema = freshSchema();
    const stores = await Promise.all(
      Array.from({ length: 8 }, () => inboxes.open({ schema, poolSize: 3 })),
    );
    await Promise.all(stores.map((store, n) => store.receive([incoming(`e${n}`)])));
    expect(await claim(stores[0]!)).toHaveLength(8);
    const applied = await inboxes.query(`SELECT version FROM ${schema}.migrations ORDER BY 1`);
    expect(applied).toEqual([{ version: 1 }, { version: 2 }, { version: 3 }, { version: 4 }]);
  });

  it('is left as it is where a newer version made it', async () => {
    const schema = freshSchema();
    await inboxes.open({ schema });
    await inboxes.query(`INSERT INTO ${schema}.migrations (version) VALUES (99)`);
    const opening = inboxes.open({ schema });
    await expect(opening).rejects.toMatchObject({ code: 'options_invalid' });
    await expect(opening).rejects.toThrow(/version 99, made by a newer nestjs-payments/);
  });

  it('is set up by a role that may create nothing in the database, in a schema of its own', async () => {
    const schema = freshSchema();
    await inboxes.query(`CREATE SCHEMA ${schema} AUTHORIZATION clerk`);
    const store = await inboxes.open({ schema, connectionString: asClerk });
    await store.receive([incoming('e1'), incoming('e2', { handlers: [] })]);
    const [lease] = await claim(store);
    await store.commit(lease!, (tx) => tx.query('SELECT 1'));
    expect(await store.stats()).toMatchObject({
      deliveries: [{ handler: 'book', state: 'done', count: 1 }],
      unhandled: 1,
    });
    await store.prune({ bodiesMs: 0, tombstonesMs: 0, limit: 10 });
  });

  it('is used by a role that may only use it', async () => {
    const schema = freshSchema();
    await inboxes.open({ schema });
    await inboxes.query(`
      GRANT USAGE ON SCHEMA ${schema} TO clerk;
      GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA ${schema} TO clerk;
      GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${schema} TO clerk`);
    const store = await inboxes.open({ schema, connectionString: asClerk });
    await store.receive([incoming('e1')]);
    expect(await store.complete((await claim(store))[0]!)).toBe(true);
  });

  it('says what to grant where the role may not set it up', async () => {
    const schema = freshSchema();
    const opening = inboxes.open({ schema, connectionString: asClerk });
    await expect(opening).rejects.toMatchObject({ code: 'options_invalid' });
    await expect(opening).rejects.toThrow(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
    await inboxes.open({ schema });
    await expect(inboxes.open({ schema, connectionString: asClerk })).rejects.toThrow(
      /GRANT USAGE/,
    );
  });

  it('is not put into a database that cannot hold every text', async () => {
    await inboxes.query(
      `CREATE DATABASE payments_latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'`,
    );
    const url = new URL(inboxes.connectionString);
    url.pathname = '/payments_latin';
    try {
      await expect(inboxes.open({ connectionString: url.href })).rejects.toThrow(
        /encoding is UTF8/,
      );
    } finally {
      await inboxes.query('DROP DATABASE payments_latin');
    }
  });
});
