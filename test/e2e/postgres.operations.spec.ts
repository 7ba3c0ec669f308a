import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { types } from 'pg';
import type { EventFilter, InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

describe('operating an inbox in PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  const one = (
    id: string,
    handlers = ['book'],
  ): [{ company: string; id: string; handlers: string[] }] => [
    { company: 'default', id, handlers },
  ];
  const now = { force: false, dueInMs: [0] };
  const pass = (): Promise<unknown> => inboxes.query('SELECT pg_sleep(0.003)');
  const listed = async (store: InboxStore, filter: EventFilter): Promise<string[]> => {
    const query = { filter, order: 'oldest', limit: 100, after: null } as const;
    return (await store.list(query)).events.map(({ id }) => id);
  };

  it('counts by handler and state, and what was forgotten no more', async () => {
    const store = await inboxes.open();
    expect(await store.stats()).toEqual({
      deliveries: [],
      unhandled: 0,
      stale: 0,
      oldestPendingMs: null,
      paused: [],
    });
    await store.receive([
      ...['a', 'b', 'c', 'd', 'e'].map((id) => incoming(id)),
      incoming('none', { handlers: [] }),
    ]);
    const [done, dead, running] = await claim(store, 3);
    await store.complete(done!);
    await store.fail(dead!, { error: 'no\0use', retryInMs: null });
    await store.skip(one('d'));
    await store.pause('*', true);
    const stats = await store.stats();
    expect(stats.deliveries.map(({ state, count }) => `${state} ${count}`)).toEqual([
      'dead 1',
      'done 1',
      'pending 1',
      'running 1',
      'skipped 1',
    ]);
    expect(stats).toMatchObject({ unhandled: 1, paused: ['*'] });
    expect(stats.oldestPendingMs).toBeGreaterThanOrEqual(0);
    expect(stats.oldestPendingMs).toBeLessThan(60_000);
    await pass();
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 100 })).toBe(3);
    expect(await store.redrive(one('b'), now)).toBe(1);
    await store.complete(running!);
    const later = await store.stats();
    expect(later.deliveries).toEqual([
      { handler: 'book', state: 'done', count: 1 },
      { handler: 'book', state: 'pending', count: 2 },
    ]);
    expect(later.unhandled).toBe(0);
  });

  it('takes deliveries along with an event that somebody deletes', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('a', { handlers: ['book', 'mail'] }), incoming('b')]);
    await inboxes.query(`DELETE FROM ${schema}.events WHERE id = 'a'`);
    expect(await claim(store)).toMatchObject([{ id: 'b' }]);
    expect(await inboxes.query(`SELECT handler FROM ${schema}.deliveries`)).toHaveLength(1);
  });

  it('redrives what is dead, skipped and, forced, done; once; with its attempts begun anew', async () => {
    const store = await inboxes.open();
    await store.receive(
      ['dead', 'done', 'skipped', 'pending', 'running'].map((id) => incoming(id)),
    );
    const leases = new Map((await claim(store)).map((lease) => [lease.id, lease]));
    await store.fail(leases.get('dead')!, { error: 'x', retryInMs: null });
    await store.complete(leases.get('done')!);
    await store.fail(leases.get('skipped')!, { error: 'x', retryInMs: 1e6 });
    await store.skip(one('skipped'));
    await store.fail(leases.get('pending')!, { error: 'x', retryInMs: 1e6 });
    const all = [...leases.keys(), 'unknown'].flatMap((id) => one(id));
    const dueInMs = all.map(() => 0);
    expect(await store.redrive(all, { force: false, dueInMs })).toBe(3);
    const again = await claim(store);
    expect(again.map(({ id, attempt }) => `${id} ${attempt}`).toSorted()).toEqual([
      'dead 1',
      'pending 2',
      'skipped 1',
    ]);
    expect(await store.redrive(one('done'), { force: true, dueInMs: [60_000] })).toBe(1);
    expect(await claim(store)).toEqual([]);
    expect(await store.nextDueInMs(['book'])).toBeGreaterThan(20_000);
  });

  it('adds a delivery for a handler that came later', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('none', { handlers: [], orderingKey: 'k' })]);
    expect(await store.redrive(one('none', ['book', 'mail']), now)).toBe(2);
    expect(await store.redrive(one('none', ['book', 'mail']), now)).toBe(2);
    expect(await store.stats()).toMatchObject({ unhandled: 0 });
    expect(await claim(store)).toHaveLength(1);
    expect((await store.find('default', 'none'))?.deliveries).toHaveLength(2);
  });

  it('never redrives what is pruned at this moment, nor prunes what is redriven', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    for (let round = 0; round < 25; round += 1) {
      await store.receive([incoming(`r${round}`)]);
      const [lease] = await claim(store);
      await store.complete(lease!);
      await pass();
      const [redriven] = await Promise.all([
        store.redrive(one(`r${round}`), { force: true, dueInMs: [0] }),
        other.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 }),
      ]);
      const left = await claim(store);
      expect(left).toHaveLength(redriven);
      for (const again of left) expect(await store.complete(again)).toBe(true);
    }
  }, 30_000);

  it('knows a duplicate by its tombstone, and stores it anew after that', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('e1'), incoming('open')]);
    await store.complete((await claim(store, 1))[0]!);
    await pass();
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 })).toBe(1);
    expect(await store.find('default', 'e1')).toMatchObject({ raw: null, deliveries: [] });
    expect(await store.redrive(one('e1'), { force: true, dueInMs: [0] })).toBe(0);
    expect(await store.receive([incoming('e1')])).toMatchObject([{ outcome: 'duplicate' }]);
    const other = incoming('e1', { raw: Buffer.from('x') });
    expect(await store.receive([other])).toMatchObject([{ outcome: 'conflict' }]);
    expect(await store.prune({ bodiesMs: 1e9, tombstonesMs: 0, limit: 10 })).toBe(1);
    expect(await store.receive([incoming('e1')])).toMatchObject([{ outcome: 'stored' }]);
  });

  it('keeps the minutes of a day, and no row of the day before', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    for (const age of ['1438 minutes', '1440 minutes', '30 days']) {
      await inboxes.query(`INSERT INTO ${schema}.activity
        VALUES (date_trunc('minute', now(), 'UTC') - interval '${age}', 1, 0, 0, 0, '{}')`);
    }
    expect(await store.prune({ bodiesMs: 1e9, tombstonesMs: 1e9, limit: 10 })).toBe(0);
    expect(await inboxes.query(`SELECT received FROM ${schema}.activity`)).toHaveLength(1);
  });

  it('holds a handler, or all, back in every instance', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    await store.receive([incoming('e1', { handlers: ['book', 'mail'] })]);
    const request = { handlers: ['book', 'mail'], limit: 9, leaseMs: 9000 };
    await store.pause('*', true);
    await store.pause('mail', true);
    await store.pause('mail', true);
    expect(await other.claim(request)).toEqual([]);
    expect(await other.nextDueInMs(request.handlers)).toBeNull();
    await other.pause('*', false);
    expect(await other.claim(request)).toMatchObject([{ handler: 'book' }]);
    await other.pause('mail', false);
    expect(await store.claim(request)).toMatchObject([{ handler: 'mail' }]);
  });

  it('lists by receipt, page by page, either way', async () => {
    const store = await inboxes.open();
    const ids = Array.from({ length: 7 }, (_, n) => `e${n}`);
    await store.receive(ids.slice(0, 4).map((id) => incoming(id)));
    for (const id of ids.slice(4)) await store.receive([incoming(id)]);
    const seen = async (order: 'newest' | 'oldest'): Promise<string[]> => {
      const found: string[] = [];
      for (let after: string | null = null; ;) {
        const page = await store.list({ filter: {}, order, limit: 3, after });
        found.push(...page.events.map(({ id }) => id));
        expect(page.events.every(({ raw }) => raw === null)).toBe(true);
        if (page.next === null) return found;
        after = page.next;
      }
    };
    expect(await seen('oldest')).toEqual(ids);
    expect(await seen('newest')).toEqual(ids.toReversed());
  });

  it('finds by every field of the filter, all of them together', async () => {
    const store = await inboxes.open();
    await store.receive([
      incoming('a', { company: 'one', handlers: ['book', 'mail'], orderingKey: '100% \0 "tx"' }),
      incoming('b', { eventType: 'refund' }),
    ]);
    await pass();
    await store.receive([incoming('c', { handlers: [] })]);
    await store.complete((await claim(store, 1))[0]!);
    const { receivedAt } = (await store.find('default', 'c'))!;
    expect(await listed(store, { company: 'one' })).toEqual(['a']);
    expect(await listed(store, { ids: ['a', 'c', 'zz'] })).toEqual(['a', 'c']);
    expect(await listed(store, { eventType: 'refund' })).toEqual(['b']);
    expect(await listed(store, { from: receivedAt })).toEqual(['c']);
    expect(await listed(store, { to: receivedAt })).toEqual(['a', 'b']);
    expect(await listed(store, { handler: 'mail' })).toEqual(['a']);
    expect(await listed(store, { state: 'done' })).toEqual(['a']);
    expect(await listed(store, { state: 'done', handler: 'mail' })).toEqual([]);
    expect(await listed(store, { state: 'pending' })).toEqual(['a', 'b']);
    expect(await listed(store, { state: 'unhandled' })).toEqual(['c']);
    expect(await listed(store, { search: '% \0 "t' })).toEqual(['a']);
    expect(await listed(store, { search: 'und' })).toEqual(['b']);
    expect(await listed(store, { company: 'one', state: 'unhandled' })).toEqual([]);
  });

  it("reads what it stored whatever the application made of the driver's parsers", async () => {
    const oids = [16, 17, 20, 23, 25, 114, 701, 1184];
    const before = oids.map((oid) => types.getTypeParser(oid));
    for (const oid of oids) types.setTypeParser(oid, () => 'nonsense');
    try {
      const store = await inboxes.open();
      await store.receive([incoming('e1')]);
      const [lease] = await claim(store);
      expect(lease).toMatchObject({ id: 'e1', token: 1, attempt: 1 });
      expect(await store.complete(lease!)).toBe(true);
      expect((await store.find('default', 'e1'))?.receivedAt.getTime()).toBeGreaterThan(1e12);
    } finally {
      for (const [index, oid] of oids.entries()) types.setTypeParser(oid, before[index]);
    }
  });
});
