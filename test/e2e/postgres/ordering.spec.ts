import { describe, expect, it } from '@jest/globals';
import type { InboxStore } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  claim,
  freshSchema,
  idsOf,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

describe('ordering keys in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('IN-16 two deliveries of one ordering key never run at the same time in three busy processes', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3].map(() => inboxes.open({ schema })));
    const all = Array.from({ length: 300 }, (_, n) => `e${n}`);
    const keyOf = (id: string): string => `k${Number(id.slice(1)) % 5}`;
    const running = new Map<string, string>();
    const violations: string[] = [];
    let done = 0;
    const settle = async (
      store: InboxStore,
      lease: Parameters<InboxStore['complete']>[0],
    ): Promise<void> => {
      const key = `${lease.handler} ${keyOf(lease.id)}`;
      if (running.has(key)) violations.push(`${key}: ${running.get(key)!} and ${lease.id}`);
      running.set(key, lease.id);
      await new Promise((resolve) => setImmediate(resolve));
      running.delete(key);
      const fails = (lease.token + lease.seq) % 4 === 0;
      const { settled } = fails
        ? await store.fail(lease, { error: 'no', retryInMs: 5 })
        : await store.complete(lease);
      if (!settled) violations.push(`${lease.id} was not running`);
      else if (!fails) done += 1;
    };
    const work = async (store: InboxStore): Promise<void> => {
      const worker = await startWorker(store);
      while (done < all.length * 2) {
        const wanted = ['book', 'mail'].map((handler) => ({ handler, limit: 7 }));
        const leases = await store.claim({ worker, wanted });
        await Promise.all(leases.map((lease) => settle(store, lease)));
      }
    };
    const receive = async (store: InboxStore, from: number): Promise<void> => {
      const worker = await startWorker(store);
      for (let n = from; n < all.length; n += 3) {
        const handlers = ['book', 'mail'];
        const [receipt] = await store.receive([
          incoming(all[n]!, {
            orderingKey: keyOf(all[n]!),
            handlers,
            assign: { worker, handlers },
          }),
        ]);
        await Promise.all(receipt!.claimed.map((lease) => settle(store, lease)));
      }
    };
    const operate = async (store: InboxStore): Promise<void> => {
      for (let n = 0; done < all.length * 2; n += 1) {
        const selection = { company: 'default', id: all[n % all.length]!, handlers: ['book'] };
        await store.skip([selection]);
        await store.redrive([selection], { force: false, dueInMs: [0] });
      }
    };
    await Promise.all([
      ...stores.map((store, index) => receive(store, index)),
      ...stores.flatMap((store) => [work(store), work(store)]),
      operate(stores[0]!),
    ]);
    expect(violations).toEqual([]);
    expect((await stores[0]!.stats()).deliveries).toEqual([]);
  });

  it('claim() leases the earliest due delivery of each key, and the others wait for their turn', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    for (const id of ['a1', 'a2', 'b1', 'b2']) {
      await store.receive([incoming(id, { orderingKey: id.charAt(0) })]);
    }
    await store.receive([incoming('free')]);
    const first = await claim(store, 2);
    expect(idsOf(first)).toEqual(['a1', 'b1']);
    expect(idsOf(await claim(store))).toEqual(['free']);
    const waiting = `SELECT count(*)::integer AS waiting FROM ${schema}.delivery WHERE waiting`;
    expect(await inboxes.query(waiting)).toEqual([{ waiting: 2 }]);
    expect(await store.nextDueInMs(['book'])).toBeNull();
    expect(await store.complete(first[0]!)).toEqual({ settled: true, nextDue: true });
    expect(await store.nextDueInMs(['book'])).toBeLessThanOrEqual(0);
    expect(idsOf(await claim(store))).toEqual(['a2']);
  });

  it('claim() skips a key that another transaction claims, and leases its delivery later', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('a', { orderingKey: 'k' })]);
    const worker = await startWorker(store);
    const other = await inboxes.openClient();
    await other.query('BEGIN');
    const claiming = await other.query(
      `SELECT o_id FROM ${schema}.claim('${worker}', '{book}', '{9}', '{NULL}') WHERE o_id IS NOT NULL`,
    );
    expect(claiming.rows).toEqual([{ o_id: 'a' }]);
    await store.receive([incoming('b', { orderingKey: 'k' })]);
    expect(await claim(store)).toEqual([]);
    const handlers = ['book'];
    const [receipt] = await store.receive([
      incoming('c', { orderingKey: 'k', assign: { worker, handlers } }),
    ]);
    expect(receipt).toMatchObject({ claimed: [], pending: true });
    await other.query('ROLLBACK');
    expect(idsOf(await claim(store))).toEqual(['a']);
  });

  it('complete() makes a delivery claimable that another claim marks as waiting at the same time', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('a', { orderingKey: 'k' })]);
    const [running] = await claim(store);
    await store.receive([incoming('b', { orderingKey: 'k' })]);
    const worker = await startWorker(store);
    const other = await inboxes.openClient();
    await other.query('BEGIN');
    // This claim sees that "a" runs and marks "b" as waiting, but has not committed.
    await other.query(`SELECT FROM ${schema}.claim('${worker}', '{book}', '{9}', '{NULL}')`);
    const settling = store.complete(running!);
    const blocked = `SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`;
    while ((await inboxes.query(blocked)).length === 0);
    await other.query('COMMIT');
    expect(await settling).toEqual({ settled: true, nextDue: true });
    expect(idsOf(await claim(store))).toEqual(['b']);
  });

  it('prune() makes a waiting delivery claimable if the process that completed the one before it died', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    for (const key of ['a', 'b']) {
      await store.receive([1, 2, 3].map((n) => incoming(`${key}${n}`, { orderingKey: key })));
    }
    expect(idsOf(await claim(store))).toEqual(['a1', 'b1']);
    await claim(store);
    await inboxes.query(`
      UPDATE ${schema}.delivery SET state = 'done', worker = NULL
       WHERE event = (SELECT seq FROM ${schema}.event WHERE id = 'b1')`);
    expect(await claim(store)).toEqual([]);
    await store.prune({ bodiesMs: 1e9, tombstonesMs: 1e9, limit: 1 });
    expect(idsOf(await claim(store))).toEqual(['b2']);
    await store.prune({ bodiesMs: 1e9, tombstonesMs: 1e9, limit: 1 });
    expect(await claim(store)).toEqual([]);
  });
});
