import { describe, expect, it } from '@jest/globals';
import { inboxContract } from './inbox-contract.ts';
import { sqliteInbox } from '../../libs/payments/src/stores/sqlite/index.js';
import type { SqliteTransaction } from '../../libs/payments/src/stores/sqlite/index.js';
import { MemoryDatabase } from '../../libs/payments/src/stores/sqlite/sqlite-memory.js';
import { resolveSqliteOptions } from '../../libs/payments/src/stores/sqlite/sqlite-options.js';
import { SqliteStore } from '../../libs/payments/src/stores/sqlite/sqlite-store.js';
import { incoming, TestWorker } from './contract-fixtures.ts';
import { FakeRuntime } from '../support/time/fake-runtime.js';

const SETTINGS = resolveSqliteOptions({ file: ':memory:' });

const write = (tx: unknown, effect: string): void => {
  (tx as SqliteTransaction).prepare('INSERT INTO effect VALUES (?)').run(effect);
};

describe('the contract, on SQLite in memory', () => {
  const cases = inboxContract({
    // The database of these stores outlives them, as that of several processes does.
    capabilities: { durable: true, shared: true, transactional: true, ownClock: false },
    breakable: false,
    start: async () => {
      const runtime = new FakeRuntime();
      const database = await MemoryDatabase.open();
      const { database: driver } = database.committer;
      driver.exec('CREATE TABLE effect (name TEXT NOT NULL)');
      const stores: SqliteStore[] = [];
      const another = async ({ clockOffsetMs = 0 } = {}): Promise<SqliteStore> => {
        const clocks = {
          now: () => runtime.now() + clockOffsetMs,
          monotonic: () => runtime.monotonic(),
          random: () => 0.5,
          schedule: () => () => {},
        };
        const store = new SqliteStore(SETTINGS, clocks, database);
        await store.open();
        stores.push(store);
        return store;
      };
      return {
        store: await another(),
        another,
        advance: async (ms) => runtime.advance(ms),
        jumpWallClock: (ms) => runtime.setWallClock(ms),
        effects: {
          write,
          read: async () =>
            Array.from(
              driver.prepare('SELECT name FROM effect').all(),
              (row) => (row as { name: string }).name,
            ),
        },
        dispose: async () => {
          await Promise.all(stores.map((store) => store.close()));
          await database.close();
        },
      };
    },
  });
  for (const { title, skipped, run } of cases) (skipped === null ? it : it.skip)(title, run);
});

describe("sqliteInbox({ file: ':memory:' })", () => {
  const open = async () => {
    const store = sqliteInbox({ file: ':memory:' }).create(new FakeRuntime());
    await store.open();
    return store;
  };

  it('WH-22 an inbox in memory declares that it is neither durable nor shared, and each inbox has its own data', async () => {
    const [one, other] = [await open(), await open()];
    expect(one.capabilities).toEqual({
      durable: false,
      shared: false,
      transactional: true,
      ownClock: false,
    });
    await one.receive([incoming({ id: 'a' })]);
    expect((await one.find('acme', 'a'))?.raw).toBeInstanceOf(Buffer);
    expect(await other.find('acme', 'a')).toBeUndefined();
    await one.close();
    await expect(one.find('acme', 'a')).rejects.toMatchObject({ code: 'inbox_unavailable' });
    await other.close();
  });

  it('an operation in memory does not read unfinished changes of an operation that was requested at the same time', async () => {
    const store = await open();
    const worker = await TestWorker.start(store);
    const events = [incoming({ id: 'a' }), incoming({ id: 'b', handlers: ['twice', 'twice'] })];
    const [good, bad, found] = await Promise.allSettled([
      store.receive([events[0]!]),
      store.receive(events.toReversed()),
      store.list({ filter: {}, order: 'oldest', limit: 9, after: null }),
    ]);
    expect([good.status, bad.status]).toEqual(['fulfilled', 'rejected']);
    expect(found).toMatchObject({ value: { events: [{ id: 'a' }] } });
    expect(await worker.claim()).toHaveLength(1);
    await store.close();
  });
});
