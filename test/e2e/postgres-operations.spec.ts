import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { types } from 'pg';
import type {
  ActivityCounts,
  EventFilter,
  InboxStore,
  StoredEvent,
} from '../../libs/payments/src/inbox/inbox-store.js';
import {
  claim,
  freshSchema,
  incoming,
  PostgresInboxes,
  startWorker,
} from '../support/postgres/postgres-inboxes.js';

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

  it('IN-28 counts what is unfinished by handler and state, of every kind', async () => {
    const store = await inboxes.open();
    const none = { count: 0, more: false };
    expect(await store.stats()).toEqual({
      deliveries: [],
      unhandled: none,
      stale: none,
      oldestPendingMs: null,
      paused: [],
    });
    await store.receive([
      ...['done', 'dead', 'running'].map((id) => incoming(id, { orderingKey: id })),
      incoming('held', { orderingKey: 'running' }),
      ...['skipped', 'pending'].map((id) => incoming(id, { handlers: ['book', 'mail'] })),
      incoming('none', { handlers: [] }),
      ...['old 1', 'old 2'].map((id) => incoming(id, { handlers: [], stale: true })),
      incoming('test', { handlers: [], eventType: 'webhook.test' }),
    ]);
    const [done, dead] = await claim(store, 3);
    await store.complete(done!);
    await store.fail(dead!, { error: 'no\0use', retryInMs: null });
    await store.skip(one('skipped'));
    await claim(store, 1);
    await store.pause('*', true);
    await store.pause('mail', true);
    const stats = await store.stats();
    expect(stats).toMatchObject({
      deliveries: [
        { handler: 'book', state: 'pending', count: 1, more: false },
        { handler: 'book', state: 'running', count: 2 },
        { handler: 'book', state: 'dead', count: 1 },
        { handler: 'mail', state: 'pending', count: 2 },
      ],
      unhandled: { count: 1, more: false },
      stale: { count: 2, more: false },
      paused: ['*', 'mail'],
    });
    expect(stats.oldestPendingMs).toBeGreaterThanOrEqual(0);
    expect(stats.oldestPendingMs).toBeLessThan(60_000);
    await pass();
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 100 })).toBe(5);
    expect(await store.stats()).toMatchObject({ unhandled: none, stale: none });
  });

  it('IN-28 counts up to 10,000, and finds the oldest that is pending or running', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('running', { handlers: ['mail'] }), incoming('pending')]);
    await inboxes.query(`
      UPDATE ${schema}.event SET received_at = received_at - (10 - seq) * interval '1 hour';
      INSERT INTO ${schema}.delivery (event, handler, state, due_at, occurred_at)
      SELECT n, h.name, 'pending', now(), now()
        FROM generate_series(1000, 11000) n, (VALUES ('big'), ('more')) AS h (name)`);
    const age = async () => Math.round((await store.stats()).oldestPendingMs! / 3_600_000);
    expect(await age()).toBe(9);
    const wanted = [{ handler: 'mail', limit: 1 }];
    const [lease] = await store.claim({ worker: await startWorker(store), wanted });
    expect(await age()).toBe(9);
    await store.complete(lease!);
    expect(await age()).toBe(8);
    await store.skip(one('pending'));
    expect((await store.stats()).deliveries).toEqual(
      ['big', 'more'].map((handler) => ({ handler, state: 'pending', count: 10_000, more: true })),
    );
    await inboxes.query(
      `DELETE FROM ${schema}.delivery WHERE event = 1000 OR (event = 1001 AND handler = 'big')`,
    );
    expect((await store.stats()).deliveries).toMatchObject([
      { handler: 'big', count: 9999, more: false },
      { handler: 'more', count: 10_000, more: false },
    ]);
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
    expect((await store.stats()).unhandled.count).toBe(0);
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
      for (const again of left) expect((await store.complete(again)).settled).toBe(true);
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

  it('IN-38 writes the activity of closed minutes as a full scan of the events counts it', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    expect(await store.activity(3)).toEqual([]);
    const handlers = ['book', 'mail'];
    await store.receive(Array.from({ length: 40 }, (_, n) => incoming(`e${n}`, { handlers })));
    const worker = await startWorker(store);
    const wanted = handlers.map((handler) => ({ handler, limit: 40 }));
    for (let round = 0; round < 3; round += 1) {
      const leases = await store.claim({ worker, wanted });
      await Promise.all(
        leases.map((lease) => {
          if (lease.seq % 3 === 0) return store.complete(lease);
          const retryInMs = lease.seq % 5 === 0 && round === 1 ? null : 0;
          return store.fail(lease, { error: 'no', retryInMs });
        }),
      );
    }
    // As though it had happened over the last minutes.
    await inboxes.query(`
      UPDATE ${schema}.event SET received_at = received_at - interval '130 s' - seq % 7 * interval '11 s';
      UPDATE ${schema}.delivery d
         SET finished_at = finished_at - shift.s, ended_at = ended_at - shift.s, history = (
           SELECT jsonb_agg(jsonb_set(x, '{1}', to_jsonb((x ->> 1)::bigint - 1000 * extract(epoch FROM shift.s)::bigint)))
             FROM jsonb_array_elements(d.history) x)
        FROM (SELECT event, handler, make_interval(secs => 120 - event % 13 * 5) AS s FROM ${schema}.delivery) shift
       WHERE shift.event = d.event AND shift.handler = d.handler`);
    await Promise.all([store.summarize(), other.summarize()]);
    await store.summarize();
    const minutes = await other.activity(1440);
    expect(minutes).toHaveLength(1440);
    const scanned: StoredEvent[] = [];
    for (let n = 0; n < 40; n += 1) scanned.push((await store.find('default', `e${n}`))!);
    const counted = minutes.slice(-7).map(({ startsAt }) => ({
      startsAt,
      total: scan(scanned, startsAt, handlers),
      handlers: Object.fromEntries(
        handlers
          .map((handler) => [handler, scan(scanned, startsAt, [handler])] as const)
          .filter(([, { received, done, failed }]) => received + done + failed > 0),
      ),
    }));
    expect(minutes.slice(-7)).toEqual(counted);
    for (const field of ['received', 'done', 'failed', 'dead'] as const) {
      expect(counted.some(({ total }) => total[field] > 0)).toBe(true);
    }
    await inboxes.query(`UPDATE ${schema}.activity SET minute = minute - interval '1 day'`);
    await store.prune({ bodiesMs: 1e9, tombstonesMs: 1e9, limit: 10 });
    expect(
      await inboxes.query(
        `SELECT FROM ${schema}.activity WHERE minute < now() - interval '1442 minutes'`,
      ),
    ).toEqual([]);
  });

  it('holds a handler, or all, back in every instance', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    await store.receive([incoming('e1', { handlers: ['book', 'mail'] })]);
    const handlers = ['book', 'mail'];
    const wanted = handlers.map((handler) => ({ handler, limit: 9 }));
    const request = { worker: await startWorker(store), wanted };
    await store.pause('*', true);
    await store.pause('mail', true);
    await store.pause('mail', true);
    expect(await other.claim(request)).toEqual([]);
    expect(await other.nextDueInMs(handlers)).toBeNull();
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
      expect(await store.complete(lease!)).toMatchObject({ settled: true });
      expect((await store.find('default', 'e1'))?.receivedAt.getTime()).toBeGreaterThan(1e12);
    } finally {
      for (const [index, oid] of oids.entries()) types.setTypeParser(oid, before[index]);
    }
  });
});

/** What a minute's activity must be. */
function scan(
  events: readonly StoredEvent[],
  startsAt: Date,
  names: readonly string[],
): ActivityCounts {
  const within = (at: Date | null): boolean =>
    at !== null && at >= startsAt && at.getTime() < startsAt.getTime() + 60_000;
  const all = events.flatMap((event) =>
    event.deliveries
      .filter(({ handler }) => names.includes(handler))
      .map((delivery) => ({ ...delivery, event })),
  );
  const ended = (state: string) =>
    all.filter((delivery) => delivery.state === state && within(delivery.finishedAt));
  const took = ended('done')
    .map(({ event, finishedAt }) => Math.max(0, finishedAt!.getTime() - event.receivedAt.getTime()))
    .toSorted((a, b) => a - b);
  const attempts = all.flatMap(({ history }) => history);
  return {
    received: new Set(
      all.filter(({ event }) => within(event.receivedAt)).map(({ event }) => event.id),
    ).size,
    done: took.length,
    failed: attempts.filter(({ outcome, endedAt }) => outcome !== 'done' && within(endedAt)).length,
    dead: ended('dead').length,
    p50Ms: took[Math.ceil(took.length * 0.5) - 1] ?? null,
    p95Ms: took[Math.ceil(took.length * 0.95) - 1] ?? null,
  };
}
