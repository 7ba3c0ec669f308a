import { describe, expect, it } from '@jest/globals';
import type { InboxStore } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  claim,
  freshSchema,
  idsOf,
  incoming,
  pagesRead,
  startWorker,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';

describe('claims in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('claim() skips rows that another transaction has locked', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3, 4].map(() => inboxes.open({ schema })));
    await stores[0]!.receive(Array.from({ length: 40 }, (_, n) => incoming(`e${n}`)));
    // Each delivery is due at another time.
    const due = `UPDATE ${schema}.delivery SET due_at = due_at - (99 - event) * 1000`;
    await inboxes.query(due);
    const other = await inboxes.openClient();
    await other.query(`BEGIN; SELECT FROM ${schema}.delivery ORDER BY event LIMIT 20 FOR UPDATE`);
    expect(idsOf(await claim(stores[0]!, 4))).toEqual(['e20', 'e21', 'e22', 'e23']);
    await other.end();
    const claimed = await Promise.all(stores.map((store) => claim(store, 9)));
    expect(new Set(claimed.flatMap(idsOf)).size).toBe(36);
  });

  it('claim() works if the default isolation level of the database is serializable', async () => {
    const [database] = await inboxes.query<{ name: string }>('SELECT current_database() AS name');
    const alter = `ALTER DATABASE ${database!.name}`;
    await inboxes.query(`${alter} SET default_transaction_isolation = 'serializable'`);
    try {
      const store = await inboxes.open();
      await Promise.all(['a', 'b', 'a'].map((id) => store.receive([incoming(id)])));
      expect(idsOf(await claim(store)).toSorted()).toEqual(['a', 'b']);
    } finally {
      await inboxes.query(`${alter} RESET default_transaction_isolation`);
    }
  });

  const one = { company: 'default', id: 'e1', handlers: ['book'] };
  it.each<
    [string, (store: InboxStore) => Promise<unknown>, (store: InboxStore) => Promise<unknown>]
  >([
    ['receipt', async () => {}, (store) => store.receive([incoming('e1')])],
    [
      'release',
      (store) => store.receive([incoming('e1')]),
      async (store) => store.release((await claim(store))[0]!),
    ],
    [
      'redrive',
      (store) => store.receive([incoming('e1')]).then(() => store.skip([one])),
      (store) => store.redrive([one], { force: false, dueInMs: [0] }),
    ],
    [
      'resume',
      (store) => store.receive([incoming('e1')]).then(() => store.pause('book', true)),
      (store) => store.pause('book', false),
    ],
  ])('IN-27 IN-20 other processes wake up after a %s', async (_name, prepare, act) => {
    const schema = freshSchema();
    const options = { schema, pollMs: 60_000 };
    // Closed before the test starts, so that no notification of it comes late.
    const before = await inboxes.open(options);
    await prepare(before);
    await before.close();
    const [here, there] = [await inboxes.open(options), await inboxes.open(options)];
    let wake = (): void => {};
    const next = (): Promise<void> => new Promise((resolve) => (wake = resolve));
    const listens = next();
    there.onWake(() => wake());
    await listens;
    const woken = next();
    await act(here);
    await woken;
    expect(await claim(there)).toMatchObject([{ id: 'e1', attempt: 1 }]);
    // The limit of the test is shorter than a poll, which would wake the process too.
  });

  it('a receive that assigns its deliveries sends no notification', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema, pollMs: 60_000 });
    const listener = await inboxes.openClient();
    let notifications = 0;
    listener.on('notification', () => (notifications += 1));
    await listener.query(`LISTEN ${schema}`);
    const worker = await startWorker(store);
    const assign = { worker, handlers: ['book'] };
    await store.receive([incoming('a', { assign })]);
    await store.close();
    await listener.query('SELECT 1');
    expect(notifications).toBe(0);
  });

  it('IN-39 with a transaction open elsewhere, claims start at a cursor and find every due delivery', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    const holder = await inboxes.openClient();
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
    // Dead entries at the start of the index that claims read, as after minutes of work.
    await inboxes.query(`
      INSERT INTO ${schema}.delivery (event, handler, state, due_at)
      SELECT -n, 'book', 'pending', ${NOW_MS} - 3600000 + n
        FROM generate_series(1, 150000) n`);
    await inboxes.query(
      `UPDATE ${schema}.delivery SET state = 'skipped', due_at = NULL WHERE event < 0`,
    );
    const reader = await inboxes.openClient();
    const pages = (since: number | null): Promise<number> =>
      pagesRead(
        reader,
        `SELECT * FROM ${schema}.claim('${worker}', '{book}', '{1}', '{${since ?? 'NULL'}}')`,
      );
    // The first call makes the plans.
    await pages(null);
    expect(await pages(null)).toBeGreaterThan(1000);
    expect(await pages(Date.now() - 1000)).toBeLessThan(100);
    // The first claim is slow, so the next ones start at the cursor.
    await claim(store, 1, worker);
    await store.receive([incoming('new')]);
    const begun = performance.now();
    expect(idsOf(await claim(store, 1, worker))).toEqual(['new']);
    const [deep] = await inboxes.query<{ event: string }>(`
      WITH e AS (
        INSERT INTO ${schema}.event (company, id, event_type, occurred_at, received_at, digest, raw, stale, unhandled)
        VALUES ('default', 'late', 't', ${NOW_MS}, ${NOW_MS}, '', '{}', false, false) RETURNING seq)
      INSERT INTO ${schema}.delivery (event, handler, state, due_at)
      SELECT seq, 'book', 'pending', ${NOW_MS} - 600000 FROM e RETURNING event`);
    expect(deep).toBeDefined();
    const found: string[] = [];
    while (found.length === 0) found.push(...idsOf(await claim(store, 1, worker)));
    expect(found).toEqual(['late']);
    expect(performance.now() - begun).toBeLessThan(20_000);
  });
});
