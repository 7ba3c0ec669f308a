import { describe, expect, it } from '@jest/globals';
import { types } from 'pg';
import {
  claim,
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';

describe('operator requests in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  const one = (
    id: string,
    handlers = ['book'],
  ): [{ company: string; id: string; handlers: string[] }] => [
    { company: 'default', id, handlers },
  ];
  const now = { force: false, dueInMs: [0] };
  const someMilliseconds = (): Promise<unknown> => inboxes.query('SELECT pg_sleep(0.003)');

  it('IN-28 stats() counts unfinished deliveries by handler and state', async () => {
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
      incoming('waiting', { orderingKey: 'running' }),
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
    await someMilliseconds();
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 100 })).toBe(5);
    expect(await store.stats()).toMatchObject({ unhandled: none, stale: none });
  });

  it('IN-28 stats() counts up to 10,000, and returns the age of the oldest unfinished delivery', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive([incoming('running', { handlers: ['mail'] }), incoming('pending')]);
    await inboxes.query(`
      UPDATE ${schema}.event SET received_at = received_at - (10 - seq) * 3600000;
      INSERT INTO ${schema}.delivery (event, handler, state, due_at)
      SELECT n, h.name, 'pending', ${NOW_MS}
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

  it('redrive() makes dead and skipped deliveries due, and completed ones with force, with attempts from 1', async () => {
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

  it('redrive() adds a delivery if the event has none to the handler', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('none', { handlers: [], orderingKey: 'k' })]);
    expect(await store.redrive(one('none', ['book', 'mail']), now)).toBe(2);
    expect(await store.redrive(one('none', ['book', 'mail']), now)).toBe(2);
    expect((await store.stats()).unhandled.count).toBe(0);
    expect(await claim(store)).toHaveLength(1);
    expect((await store.find('default', 'none'))?.deliveries).toHaveLength(2);
  });

  it('redrive() and prune() at the same time never act on the same event', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    for (let round = 0; round < 25; round += 1) {
      await store.receive([incoming(`r${round}`)]);
      const [lease] = await claim(store);
      await store.complete(lease!);
      await someMilliseconds();
      const [redriven] = await Promise.all([
        store.redrive(one(`r${round}`), { force: true, dueInMs: [0] }),
        other.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 }),
      ]);
      const left = await claim(store);
      expect(left).toHaveLength(redriven);
      for (const again of left) expect((await store.complete(again)).settled).toBe(true);
    }
  });

  it('receive() detects a duplicate by its tombstone, and stores the event after the tombstone is pruned', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('e1'), incoming('open')]);
    await store.complete((await claim(store, 1))[0]!);
    await someMilliseconds();
    expect(await store.prune({ bodiesMs: 0, tombstonesMs: 1e9, limit: 10 })).toBe(1);
    expect(await store.find('default', 'e1')).toMatchObject({ raw: null, deliveries: [] });
    expect(await store.redrive(one('e1'), { force: true, dueInMs: [0] })).toBe(0);
    expect(await store.receive([incoming('e1')])).toMatchObject([{ outcome: 'duplicate' }]);
    const other = incoming('e1', { raw: Buffer.from('x') });
    expect(await store.receive([other])).toMatchObject([{ outcome: 'conflict' }]);
    expect(await store.prune({ bodiesMs: 1e9, tombstonesMs: 0, limit: 10 })).toBe(1);
    expect(await store.receive([incoming('e1')])).toMatchObject([{ outcome: 'stored' }]);
  });

  it('pause() stops the claims of a handler, or of all handlers, in every process', async () => {
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

  it('the inbox reads its rows correctly if the application has replaced the parsers of the driver', async () => {
    const oids = [16, 17, 20, 23, 25, 114, 701, 1184];
    const before = oids.map((oid) => types.getTypeParser(oid));
    for (const oid of oids) types.setTypeParser(oid, () => 'nonsense');
    try {
      const store = await inboxes.open();
      await store.receive([incoming('e1')]);
      const [lease] = await claim(store);
      expect(lease).toMatchObject({ id: 'e1', attempt: 1 });
      expect(lease!.token).toBeGreaterThan(1e12);
      expect(await store.complete(lease!)).toMatchObject({ settled: true });
      expect((await store.find('default', 'e1'))?.receivedAt.getTime()).toBeGreaterThan(1e12);
    } finally {
      for (const [index, oid] of oids.entries()) types.setTypeParser(oid, before[index]);
    }
  });
});
