import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { randomBytes } from 'node:crypto';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

describe('receiving into PostgreSQL', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  it('keeps every byte as it came, those that are no text too', async () => {
    const store = await inboxes.open();
    const raw = Buffer.concat([Buffer.from([0, 255, 92, 39, 34]), randomBytes(10_000)]);
    await store.receive([incoming('e1', { raw })]);
    expect((await store.find('default', 'e1'))?.raw?.equals(raw)).toBe(true);
    expect((await claim(store))[0]?.raw.equals(raw)).toBe(true);
  });

  it('stores one of fifty that come at the same time, on two instances', async () => {
    const schema = freshSchema();
    const stores = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    const receipts = await Promise.all(
      Array.from({ length: 50 }, (_, n) => stores[n % 2]!.receive([incoming('same')])),
    );
    const outcomes = receipts.flat().map(({ outcome }) => outcome);
    expect(outcomes.filter((outcome) => outcome === 'stored')).toHaveLength(1);
    expect(outcomes.filter((outcome) => outcome === 'duplicate')).toHaveLength(49);
  });

  it('reports what is twice in one batch and stores the first', async () => {
    const store = await inboxes.open();
    const receipts = await store.receive([
      incoming('a', { dedupeKey: 'k' }),
      incoming('b', { dedupeKey: 'k' }),
      incoming('a', { dedupeKey: 'z', raw: Buffer.from('other') }),
      incoming('c'),
    ]);
    expect(receipts).toEqual([
      { outcome: 'stored', id: 'a' },
      { outcome: 'duplicate', id: 'a' },
      { outcome: 'conflict', id: 'a' },
      { outcome: 'stored', id: 'c' },
    ]);
  });

  it('stores an event whose rival in the batch was itself a duplicate', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('first', { dedupeKey: 'k' })]);
    const receipts = await store.receive([
      incoming('x', { dedupeKey: 'k' }),
      incoming('x', { dedupeKey: 'other' }),
    ]);
    expect(receipts).toEqual([
      { outcome: 'duplicate', id: 'first' },
      { outcome: 'stored', id: 'x' },
    ]);
  });

  it('knows a dedupe key that is the id of another event, whichever came first', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('a'), incoming('p', { dedupeKey: 'q' })]);
    const receipts = await store.receive([
      incoming('b', { dedupeKey: 'a' }),
      incoming('q'),
      incoming('c', { company: 'other', dedupeKey: 'a' }),
      incoming('a', { dedupeKey: 'z', raw: Buffer.from('x') }),
    ]);
    expect(receipts).toEqual([
      { outcome: 'duplicate', id: 'a' },
      { outcome: 'duplicate', id: 'p' },
      { outcome: 'stored', id: 'c' },
      { outcome: 'conflict', id: 'a' },
    ]);
  });

  it('keeps texts that PostgreSQL cannot hold, and tells them apart', async () => {
    const store = await inboxes.open();
    const odd = ['\ud800', '\ud801', '\ue000d800', 'a\0b', 'émoji 😀', "'; DROP TABLE x; --"];
    const receipts = await store.receive(
      odd.map((id) => incoming(id, { orderingKey: id, eventType: id, handlers: [`h${id}`] })),
    );
    expect(receipts).toEqual(odd.map((id) => ({ outcome: 'stored', id })));
    for (const id of odd) {
      const stored = await store.find('default', id);
      expect(stored).toMatchObject({ id, orderingKey: id, eventType: id });
      expect(stored?.deliveries[0]?.handler).toBe(`h${id}`);
      expect(await store.claim({ handlers: [`h${id}`], limit: 9, leaseMs: 9000 })).toHaveLength(1);
    }
  });

  it('takes ordering and dedupe keys of any length', async () => {
    const store = await inboxes.open();
    const long = randomBytes(50_000).toString('hex');
    const event = incoming('long', { orderingKey: long, dedupeKey: long });
    expect(await store.receive([event])).toEqual([{ outcome: 'stored', id: 'long' }]);
    expect((await store.find('default', 'long'))?.orderingKey).toBe(long);
  });

  it('stores the others where one that came with them cannot be', async () => {
    const store = await inboxes.open();
    // Longer than an index takes, and with nothing in it to compress.
    const bad = incoming('bad', { handlers: [randomBytes(6000).toString('base64')] });
    const [first, ...rest] = await Promise.allSettled([
      ...['w1', 'w2'].map((id) => store.receive([incoming(id)])),
      store.receive([bad]),
      ...['g1', 'g2', 'g3'].map((id) => store.receive([incoming(id)])),
    ]);
    expect(first?.status).toBe('fulfilled');
    expect(rest.map(({ status }) => status).toSorted()).toEqual([
      ...Array.from({ length: 4 }, () => 'fulfilled'),
      'rejected',
    ]);
    expect(rest.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'inbox_unavailable', sqlState: '54000' },
    });
  });

  it('waits for the disk though the database is set not to', async () => {
    const store = await inboxes.open();
    const [database] = await inboxes.query<{ name: string }>('SELECT current_database() AS name');
    await inboxes.query(`ALTER DATABASE ${database!.name} SET synchronous_commit = off`);
    try {
      const eager = await inboxes.open();
      const before = await inboxes.query<{ flushed: string }>(
        'SELECT pg_current_wal_lsn() AS flushed',
      );
      await eager.receive([incoming('safe')]);
      const [after] = await inboxes.query<{ safe: boolean }>(
        `SELECT pg_current_wal_flush_lsn() >= '${before[0]!.flushed}'::pg_lsn + 100 AS safe`,
      );
      expect(after!.safe).toBe(true);
    } finally {
      await inboxes.query(`ALTER DATABASE ${database!.name} RESET synchronous_commit`);
    }
    await store.receive([incoming('as ever')]);
  });

  it('loses nothing that was acknowledged before the power failed', async () => {
    if (!inboxes.server.controllable) return;
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const acknowledged: string[] = [];
    const sending = Array.from({ length: 8 }, async (_, sender) => {
      for (let n = 0; ; n += 1) {
        const id = `${sender}-${n}`;
        await store.receive([incoming(id)]);
        acknowledged.push(id);
        if (acknowledged.length === 400) await inboxes.server.crash();
      }
    });
    await Promise.allSettled(sending);
    await inboxes.server.start();
    const known = await inboxes.query<{ id: string }>(`SELECT id FROM ${schema}.events`);
    const ids = new Set(known.map(({ id }) => id));
    expect(acknowledged.length).toBeGreaterThanOrEqual(400);
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
  }, 60_000);
});
