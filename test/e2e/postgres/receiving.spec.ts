import { describe, expect, it } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import type { StoreReceipt } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

describe('receive() in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  const outcomes = (receipts: readonly StoreReceipt[]): string[] =>
    receipts.map(({ outcome, id }) => `${outcome} ${id}`);

  it('receive() stores an event although the batch has a duplicate of another transaction with the same id', async () => {
    const store = await inboxes.open();
    await store.receive([incoming('first', { orderingKey: 'k', oncePerTransaction: true })]);
    const receipts = await store.receive([
      incoming('x', { orderingKey: 'k', oncePerTransaction: true }),
      incoming('x', { orderingKey: 'other', oncePerTransaction: true }),
    ]);
    expect(outcomes(receipts)).toEqual(['duplicate first', 'stored x']);
  });

  it('IN-32 receive() stores no event with an outdated version of the handler catalog', async () => {
    const schema = freshSchema();
    const [store, other] = [await inboxes.open({ schema }), await inboxes.open({ schema })];
    let version = 0;
    const stopping = new AbortController();
    const stored: string[] = [];
    const receiving = Array.from({ length: 4 }, async (_, sender) => {
      for (let n = 0; !stopping.signal.aborted; n += 1) {
        const id = `${sender}-${n}`;
        const known = version;
        const handlers = Array.from({ length: known }, (_, index) => `h${index + 1}`);
        const event = incoming(id, { handlers, catalogVersion: known });
        const [receipt] = await store.receive([event]);
        if (receipt!.outcome === 'stored') stored.push(id);
        else expect(receipt!.outcome).toBe('outdated');
      }
    });
    for (let n = 1; n <= 10; n += 1) {
      const handlers = [{ name: `h${n}`, patterns: ['*'] }];
      const catalog = await other.register({ id: randomUUID(), leaseMs: 60_000, handlers });
      expect(catalog.version).toBe(n);
      version = n;
      const before = stored.length;
      while (stored.length < before + 8) await new Promise((resolve) => setImmediate(resolve));
    }
    stopping.abort();
    await Promise.all(receiving);
    // Times are in whole milliseconds, so events of the millisecond of a registration are not checked.
    const rows = await inboxes.query<{ wrong: number }>(`
      SELECT count(*)::integer AS wrong FROM ${schema}.event e
       WHERE (SELECT count(*) FROM ${schema}.delivery d WHERE d.event = e.seq) <>
             (SELECT count(*) FROM ${schema}.handler h WHERE h.first_seen < e.received_at)
         AND NOT EXISTS (SELECT FROM ${schema}.handler h WHERE h.first_seen = e.received_at)`);
    expect(rows).toEqual([{ wrong: 0 }]);
  });

  it('receive() stores texts with characters that PostgreSQL cannot store', async () => {
    const store = await inboxes.open();
    const odd = ['\ud800', '\ud801', '\ue000d800', 'a\0b', 'émoji 😀', "'; DROP TABLE x; --"];
    const receipts = await store.receive(
      odd.map((id) => incoming(id, { orderingKey: id, eventType: id, handlers: [`h${id}`] })),
    );
    expect(outcomes(receipts)).toEqual(odd.map((id) => `stored ${id}`));
    for (const id of odd) {
      const stored = await store.find('default', id);
      expect(stored).toMatchObject({ id, orderingKey: id, eventType: id });
      expect(stored?.deliveries[0]?.handler).toBe(`h${id}`);
      const wanted = [{ handler: `h${id}`, limit: 9 }];
      expect(await store.claim({ worker: await startWorker(store), wanted })).toHaveLength(1);
    }
  });

  it('receive() stores the other events of a batch if one cannot be stored', async () => {
    const store = await inboxes.open();
    // The name of the handler is longer than an index entry may be, and cannot be compressed.
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

  it('receive() waits for the disk even if the database has synchronous_commit off', async () => {
    const store = await inboxes.open();
    const [database] = await inboxes.query<{ name: string }>('SELECT current_database() AS name');
    await inboxes.query(`ALTER DATABASE ${database!.name} SET synchronous_commit = off`);
    try {
      const other = await inboxes.open();
      const before = await inboxes.query<{ flushed: string }>(
        'SELECT pg_current_wal_lsn() AS flushed',
      );
      await other.receive([incoming('safe')]);
      const [after] = await inboxes.query<{ safe: boolean }>(
        `SELECT pg_current_wal_flush_lsn() >= '${before[0]!.flushed}'::pg_lsn + 100 AS safe`,
      );
      expect(after!.safe).toBe(true);
    } finally {
      await inboxes.query(`ALTER DATABASE ${database!.name} RESET synchronous_commit`);
    }
    await store.receive([incoming('after')]);
  });

  it('acknowledged events survive a crash of the server', async () => {
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
    const known = await inboxes.query<{ id: string }>(`SELECT id FROM ${schema}.event`);
    const ids = new Set(known.map(({ id }) => id));
    expect(acknowledged.length).toBeGreaterThanOrEqual(400);
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
  });
});
