import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import type { InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

describe('claiming from PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  const ids = (claimed: readonly { id: string }[]): string[] => claimed.map(({ id }) => id);

  it('never leases two deliveries of one ordering key, whoever claims at the same time', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3].map(() => inboxes.open({ schema })));
    const events = Array.from({ length: 240 }, (_, n) =>
      incoming(`e${n}`, {
        orderingKey: n % 8 === 0 ? null : `hot ${n % 5}`,
        handlers: ['book', 'mail'],
      }),
    );
    await stores[0]!.receive(events);
    const holders = new Map<string, string>();
    const keyOf = new Map(events.map(({ id, orderingKey }) => [id, orderingKey]));
    let done = 0;
    const violations: string[] = [];
    const work = async (store: InboxStore, handlers: string[]): Promise<void> => {
      while (done < events.length * 2) {
        const leases = await store.claim({ handlers, limit: 7, leaseMs: 30_000 });
        for (const lease of leases) {
          const key = `${lease.handler} ${keyOf.get(lease.id) ?? lease.id}`;
          if (holders.has(key)) violations.push(`${key}: ${holders.get(key)!} and ${lease.id}`);
          holders.set(key, lease.id);
        }
        await Promise.all(
          leases.map(async (lease) => {
            // Free as soon as it is settled, which is before this process hears of it.
            holders.delete(`${lease.handler} ${keyOf.get(lease.id) ?? lease.id}`);
            expect(await store.complete(lease)).toBe(true);
            done += 1;
          }),
        );
      }
    };
    await Promise.all(
      stores.flatMap((store) =>
        [['book', 'mail'], ['mail', 'book'], ['book'], ['mail']].map((handlers) =>
          work(store, handlers),
        ),
      ),
    );
    expect(violations).toEqual([]);
    const attempts = await inboxes.query(`SELECT max(attempts) AS most FROM ${schema}.deliveries`);
    expect(attempts).toEqual([{ most: 1 }]);
  }, 60_000);

  it('keeps keys exclusive where leases run out under load', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3].map(() => inboxes.open({ schema })));
    await stores[0]!.receive(
      Array.from({ length: 60 }, (_, n) => incoming(`e${n}`, { orderingKey: `k${n % 4}` })),
    );
    const progress = { left: 60 };
    let most = 0;
    const watch = (async () => {
      while (progress.left > 0) {
        const [row] = await inboxes.query<{ n: string | null }>(
          `SELECT max(n) AS n FROM (SELECT count(*) AS n FROM ${schema}.deliveries
            WHERE state = 'running' AND due_at > clock_timestamp() GROUP BY ordering) x`,
        );
        most = Math.max(most, Number(row!.n ?? 0));
      }
    })();
    let abandoned = 0;
    // A little longer after each that was too short, so that a machine that is slow comes to an end.
    let leaseMs = 15;
    await Promise.all(
      stores.map(async (store, index) => {
        while (progress.left > 0) {
          for (const lease of await claim(store, 5, leaseMs)) {
            if ((lease.token + index) % 3 === 0 && lease.attempt < 4) abandoned += 1;
            else if (await store.complete(lease)) progress.left -= 1;
            else leaseMs += 1;
          }
        }
      }),
    );
    await watch;
    expect(most).toBe(1);
    expect(abandoned).toBeGreaterThan(0);
  }, 60_000);

  it('leases the longest due first, one of each key, up to the limit', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('a1', { orderingKey: 'a' })]);
    await store.receive([incoming('a2', { orderingKey: 'a' })]);
    await store.receive([
      incoming('b1', { orderingKey: 'b' }),
      incoming('b2', { orderingKey: 'b' }),
    ]);
    await store.receive([incoming('free')]);
    const first = await claim(store, 2);
    expect(ids(first)).toEqual(['a1', 'b1']);
    expect(ids(await claim(store))).toEqual(['free']);
    expect(await store.nextDueInMs(['book'])).toBeGreaterThan(1000);
    await store.complete(first[0]!);
    expect(await store.nextDueInMs(['book'])).toBeLessThanOrEqual(0);
    expect(ids(await claim(store))).toEqual(['a2']);
  });

  it('finds what is free behind what others hold at this moment', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3, 4].map(() => inboxes.open({ schema })));
    await stores[0]!.receive(Array.from({ length: 40 }, (_, n) => incoming(`e${n}`)));
    // Each falls due at a time of its own.
    const due = `UPDATE ${schema}.deliveries SET due_at = due_at - (99 - event) * interval '1 second'`;
    await inboxes.query(due);
    const other = new Client({ connectionString: inboxes.connectionString });
    await other.connect();
    await other.query(`BEGIN; SELECT FROM ${schema}.deliveries ORDER BY event LIMIT 20 FOR UPDATE`);
    expect(ids(await claim(stores[0]!, 4))).toEqual(['e20', 'e21', 'e22', 'e23']);
    await other.end();
    const claimed = await Promise.all(stores.map((store) => claim(store, 9)));
    expect(new Set(claimed.flatMap(ids)).size).toBe(36);
  });

  it('refuses a lease that ran out though nobody took it, and one that was taken', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('e1')]);
    const [stale] = await claim(store, 1, 1);
    await inboxes.query('SELECT pg_sleep(0.01)');
    expect(await store.extend(stale!, 1000)).toBe(false);
    expect(await store.complete(stale!)).toBe(false);
    expect(await store.fail(stale!, { error: 'x', retryInMs: 0 })).toBe(false);
    expect(await store.release(stale!)).toBe(false);
    const [fresh] = await claim(store);
    expect(fresh).toMatchObject({ id: 'e1', attempt: 2 });
    expect(fresh!.token).toBeGreaterThan(stale!.token);
    expect(await store.complete(stale!)).toBe(false);
    expect(await store.complete(fresh!)).toBe(true);
    expect(await store.complete(fresh!)).toBe(false);
  });

  it('lets a key go on when the lease that held it ran out', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('old', { orderingKey: 'k' })]);
    await store.receive([incoming('young', { orderingKey: 'k' })]);
    await claim(store, 1, 1);
    await inboxes.query('SELECT pg_sleep(0.01)');
    // Due since it came, and so for longer than the other, which is due since its lease ended.
    const [next] = await claim(store);
    expect(next).toMatchObject({ id: 'young', attempt: 1, takenOver: false });
    expect(await claim(store)).toEqual([]);
    await store.complete(next!);
    expect(await claim(store)).toMatchObject([{ id: 'old', attempt: 2, takenOver: true }]);
  });

  it('passes over a key that another instance is leasing at this moment, without waiting', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('dead', { orderingKey: 'k' })]);
    await store.fail((await claim(store))[0]!, { error: 'x', retryInMs: null });
    await store.receive([incoming('e2', { orderingKey: 'k' })]);
    const other = new Client({ connectionString: inboxes.connectionString });
    await other.connect();
    await other.query('BEGIN');
    const leasing = await other.query(`SELECT o_id FROM ${schema}.claim('{book}', 9, 30000)`);
    expect(leasing.rows).toEqual([{ o_id: 'e2' }]);
    // Now another delivery of the key is the longest due, and nothing of the lease is visible yet.
    const selection = { company: 'default', id: 'dead', handlers: ['book'] };
    await store.redrive([selection], { force: false, dueInMs: [-60_000] });
    expect(await claim(store)).toEqual([]);
    await other.query('COMMIT');
    expect(await claim(store)).toEqual([]);
    await other.end();
  });

  it('passes over a key whose holder is committing beyond its lease', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('e1', { orderingKey: 'k' })]);
    await store.receive([incoming('e2', { orderingKey: 'k' })]);
    const [lease] = await claim(store, 1, 1000);
    const during = await store.commit(lease!, async () => {
      await inboxes.query('SELECT pg_sleep(1.01)');
      return claim(store);
    });
    expect(during).toEqual([]);
    expect(ids(await claim(store))).toEqual(['e2']);
  });

  it('says whether a newer event of the key was handled, also after that was pruned', async () => {
    const store = await inboxes.open();
    const at = (second: number): Date => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
    await store.receive([incoming('newer', { orderingKey: 'k', occurredAt: at(2) })]);
    const [newer] = await claim(store);
    expect(newer!.newerHandled).toBe(false);
    await store.complete(newer!);
    await store.receive([
      incoming('older', { orderingKey: 'k', occurredAt: at(1), handlers: ['book', 'mail'] }),
      incoming('other', { orderingKey: 'x', occurredAt: at(1) }),
    ]);
    await inboxes.query('SELECT pg_sleep(0.005)');
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 })).toBe(1);
    const claimed = await store.claim({ handlers: ['book', 'mail'], limit: 9, leaseMs: 9000 });
    const seen = claimed.map(({ id, handler, newerHandled }) => `${id} ${handler} ${newerHandled}`);
    expect(seen.toSorted()).toEqual(['older book true', 'older mail false', 'other book false']);
  });

  it('claims under a stricter default isolation as well', async () => {
    const [database] = await inboxes.query<{ name: string }>('SELECT current_database() AS name');
    const alter = `ALTER DATABASE ${database!.name}`;
    await inboxes.query(`${alter} SET default_transaction_isolation = 'serializable'`);
    try {
      const store = await inboxes.open();
      await Promise.all(['a', 'b', 'a'].map((id) => store.receive([incoming(id)])));
      expect(ids(await claim(store)).toSorted()).toEqual(['a', 'b']);
    } finally {
      await inboxes.query(`${alter} RESET default_transaction_isolation`);
    }
  });

  it('wakes another instance when an event came, and when a claim was given back', async () => {
    const schema = freshSchema();
    const options = { schema, pollMs: 60_000 };
    const [here, there] = [await inboxes.open(options), await inboxes.open(options)];
    let told = 0;
    let tell = (): void => {};
    there.onWake(() => {
      told += 1;
      tell();
    });
    const next = (): Promise<void> => new Promise((resolve) => (tell = resolve));
    // The first comes of itself, once it listens.
    if (told === 0) await next();
    const received = next();
    await here.receive([incoming('e1')]);
    await received;
    const [lease] = await claim(here);
    const released = next();
    await here.release(lease!);
    await released;
    expect(await claim(there)).toMatchObject([{ id: 'e1', attempt: 1 }]);
  });
});
