import { AsyncLocalStorage } from 'node:async_hooks';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import type { SqliteStore } from '../../../libs/payments/dist/stores/sqlite/sqlite-store.js';
import type { ClaimedDelivery } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming, SqliteHarness } from '../../support/sqlite/sqlite-harness.ts';
import { turns } from '../../support/time/waiting.js';

let harness: SqliteHarness;
let store: SqliteStore;
let claim: (limit: number) => Promise<ClaimedDelivery[]>;
beforeEach(async () => {
  harness = new SqliteHarness();
  store = await harness.open({ busyTimeoutMs: 500 });
  claim = await harness.claimer(store);
  harness.connect().exec('CREATE TABLE ledger (id TEXT PRIMARY KEY, amount INTEGER) STRICT');
});
afterEach(() => harness.dispose());

async function claimed(count = 1): Promise<ClaimedDelivery[]> {
  await store.receive(Array.from({ length: count }, () => incoming()));
  return claim(count);
}

const write = (tx: SqliteTransaction, id: string) =>
  tx.prepare('INSERT INTO ledger VALUES (?, ?)').run(id, 1);

const ledger = () =>
  Array.from(harness.connect().prepare('SELECT id FROM ledger ORDER BY id').all(), ({ id }) => id);

describe('a commit on SQLite', () => {
  it('a commit on SQLite lets the callback read and write tables in the same file, with positional or named parameters', async () => {
    const [lease] = await claimed();
    const { result } = await store.commit(lease!, (tx) => {
      tx.exec(
        "INSERT INTO ledger VALUES ('a', 1); INSERT INTO ledger VALUES ('b', 9007199254740993)",
      );
      tx.prepare('INSERT INTO ledger VALUES ($id, $amount)').run({ $id: 'c', $amount: 3 });
      return [
        tx.prepare('SELECT amount FROM ledger WHERE id = ?').get('c')?.['amount'],
        tx.prepare("SELECT amount FROM ledger WHERE id = 'b'", { readBigInts: true }).get()?.[
          'amount'
        ],
        tx.prepare('SELECT id FROM ledger').all().length,
        tx.prepare('SELECT 1 WHERE 0').get(),
      ];
    });
    expect(result).toEqual([3, 9007199254740993n, 3, undefined]);
  });

  it('a commit on SQLite rejects a callback that returns a promise, and stores none of the writes of the callback', async () => {
    const [lease] = await claimed();
    let late: unknown;
    const commit = store.commit(lease!, async (tx) => {
      write(tx, 'early');
      await Promise.resolve();
      try {
        write(tx, 'late');
      } catch (error) {
        late = error;
      }
      throw new Error('after all');
    });
    await expect(commit).rejects.toThrow(TypeError);
    await expect(commit).rejects.toThrow('must be synchronous');
    expect(late).toMatchObject({ message: expect.stringContaining('is over') });
    expect(ledger()).toEqual([]);
    expect((await store.complete(lease!)).settled).toBe(true);
  });

  it.each([
    ['COMMIT', 'COMMIT'],
    ['a COMMIT behind a comment', '-- now\n /* really */ commit'],
    ['an END in a script', "INSERT INTO ledger VALUES (';', 1); END; SELECT 1"],
    ['ROLLBACK', 'ROLLBACK'],
    ['BEGIN', 'BEGIN IMMEDIATE'],
    // SQLite itself rejects these statements, if the version of Node has `setAuthorizer`.
    ...('setAuthorizer' in DatabaseSync.prototype
      ? [
          ['ATTACH', "ATTACH ':memory:' AS other"],
          ['PRAGMA synchronous', 'PRAGMA synchronous = OFF'],
        ]
      : []),
  ])('a commit on SQLite rejects %s in the callback, and stores nothing', async (_name, sql) => {
    const [lease] = await claimed();
    const commit = store.commit(lease!, (tx) => {
      write(tx, 'before');
      tx.exec(sql);
    });
    await expect(commit).rejects.toThrow('must not begin or end a transaction');
    expect(ledger()).toEqual([]);
    expect((await store.complete(lease!)).settled).toBe(true);
  });

  it('a commit on SQLite allows savepoints, triggers and any text in strings in the callback', async () => {
    const [lease] = await claimed();
    await store.commit(lease!, (tx) => {
      tx.exec('SAVEPOINT mine');
      write(tx, 'undone');
      tx.exec('ROLLBACK TO mine; RELEASE mine');
      write(tx, '; COMMIT;');
      tx.exec(
        'CREATE TRIGGER t AFTER INSERT ON ledger BEGIN UPDATE ledger SET amount = 2; SELECT 1; END',
      );
    });
    expect(ledger()).toEqual(['; COMMIT;']);
  });

  it("a commit on SQLite rejects with the error of the application's SQL, even for a deferred constraint", async () => {
    const [lease, other] = await claimed(2);
    const unknown = store.commit(lease!, (tx) => tx.exec('INSERT INTO nowhere VALUES (1)'));
    await expect(unknown).rejects.toThrow('no such table: nowhere');
    harness
      .connect()
      .exec('CREATE TABLE line (id REFERENCES ledger (id) DEFERRABLE INITIALLY DEFERRED)');
    const dangling = store.commit(other!, (tx) => tx.exec("INSERT INTO line VALUES ('none')"));
    await expect(dangling).rejects.toThrow('FOREIGN KEY constraint failed');
    expect((await store.complete(lease!)).settled).toBe(true);
    expect((await store.complete(other!)).settled).toBe(true);
  });

  it('a commit on SQLite waits for the lock of another connection without blocking the event loop', async () => {
    const [lease] = await claimed();
    const patient = await harness.open({ busyTimeoutMs: 20_000 });
    const application = harness.connect();
    application.exec('BEGIN IMMEDIATE');
    const commit = patient.commit(lease!, (tx) => write(tx, 'waited'));
    await turns(20);
    application.exec('COMMIT');
    await commit;
    expect(ledger()).toEqual(['waited']);
  });

  it('a commit on SQLite rejects if the lock is not released within busyTimeoutMs, and stores nothing', async () => {
    const [lease] = await claimed();
    const application = harness.connect();
    application.exec('BEGIN IMMEDIATE');
    const commit = store.commit(lease!, (tx) => write(tx, 'never'));
    await expect(commit).rejects.toMatchObject({
      code: 'inbox_unavailable',
      message: expect.stringContaining('locked the file for'),
    });
    application.exec('ROLLBACK');
    expect(ledger()).toEqual([]);
    expect((await store.complete(lease!)).settled).toBe(true);
  });

  it('a commit on SQLite waits for earlier commits longer than busyTimeoutMs if no other connection has the lock', async () => {
    const leases = await claimed(15);
    const slowly = (tx: SqliteTransaction, { id }: ClaimedDelivery) => {
      write(tx, id);
      const end = performance.now() + 60;
      while (performance.now() < end);
    };
    await Promise.all(leases.map((lease) => store.commit(lease, (tx) => slowly(tx, lease))));
    expect(ledger()).toEqual(leases.map(({ id }) => id).toSorted());
  });

  it('on SQLite, a commit succeeds while other calls receive events, claim deliveries and commit', async () => {
    const leases = await claimed(100);
    const [commits, receives] = await Promise.all([
      Promise.all(leases.map((lease) => store.commit(lease, (tx) => write(tx, lease.id)))),
      Promise.all(Array.from({ length: 100 }, () => store.receive([incoming()]))),
    ]);
    expect([commits.length, receives.length]).toEqual([100, 100]);
    expect(ledger()).toHaveLength(100);
    expect((await store.stats()).deliveries).toEqual([
      { handler: 'book', state: 'pending', count: 100, more: false },
    ]);
  });

  it('a commit on SQLite runs its callback in the async context of its handler, even while other commits run', async () => {
    const context = new AsyncLocalStorage<number>();
    const leases = await claimed(4);
    const seen = leases.map((lease, n) =>
      context.run(n, () => store.commit(lease, () => context.getStore())),
    );
    expect((await Promise.all(seen)).map(({ result }) => result)).toEqual([0, 1, 2, 3]);
  });

  it('a commit on SQLite is completed before the store closes', async () => {
    const [lease] = await claimed();
    const commit = store.commit(lease!, (tx) => write(tx, 'last'));
    await store.close();
    await commit;
    expect(ledger()).toEqual(['last']);
    await expect(store.commit(lease!, () => {})).rejects.toThrow('is closed');
  });
});
