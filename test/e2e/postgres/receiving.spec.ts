import { describe, expect, it } from '@jest/globals';
import { randomBytes, randomUUID } from 'node:crypto';
import type {
  InboxStore,
  StoreReceipt,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

const inboxes = usePostgresInboxes();

/** The cost of an event that is received, handled at once and done. Lower a number when the code becomes cheaper. */
const COSTS = {
  /** Index entries, including the entries for the new row version of the settled delivery. */
  entries: 7,
  /** Bytes of the write-ahead log, with a body of 400 bytes. */
  walBytes: 2300,
};

const EVENTS = 500;
/** The number of events that one statement receives. */
const BATCH = 50;

describe('the costs of a handled event on PostgreSQL', () => {
  const schema = 'costs';

  /** Receives events of different payment transactions, and returns their claimed deliveries. */
  async function receive(store: InboxStore, worker: string, count: number) {
    const events = Array.from({ length: count }, (_, n) => {
      const reference = `order ${randomUUID()}`;
      return incoming(randomUUID(), {
        orderingKey: randomUUID(),
        oncePerTransaction: true,
        raw: Buffer.alloc(400, 'x'),
        reference,
        summary: { reference, amount: `${n}.00`, currency: 'KES' },
        assign: { workerId: worker, handlers: ['book'] },
      });
    });
    const claimed = (await store.receive(events)).flatMap((receipt) => receipt.claimed);
    expect(claimed).toHaveLength(count);
    return claimed;
  }

  /** Returns the indexes that contain the only row of the table. */
  async function entriesOf(table: string): Promise<string[]> {
    const indexes = await inboxes.query<{ name: string; condition: string | null }>(
      `SELECT x.indexrelid::regclass::text AS name, pg_get_expr(x.indpred, x.indrelid) AS condition
         FROM pg_index x WHERE x.indrelid = '${schema}.${table}'::regclass`,
    );
    const found: string[] = [];
    for (const { name, condition } of indexes) {
      const text = `SELECT FROM ${schema}.${table} WHERE ${condition ?? 'true'}`;
      if ((await inboxes.query(text)).length > 0) found.push(name);
    }
    return found;
  }

  it(`a handled event writes at most ${COSTS.entries} index entries`, async () => {
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    const [lease] = await receive(store, worker, 1);
    const received = [...(await entriesOf('event')), ...(await entriesOf('delivery'))];
    expect(received).toContain(`${schema}.delivery_running`);
    await store.complete(lease!);
    const entries = [...received, ...(await entriesOf('delivery'))];
    expect(entries.length).toBeLessThanOrEqual(COSTS.entries);
  });

  it(`a handled event writes at most ${COSTS.walBytes} bytes to the write-ahead log`, async () => {
    // Other databases of a shared server write to the same log.
    if (!inboxes.server.controllable) return;
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    for (const table of ['event', 'delivery']) {
      await inboxes.query(`ALTER TABLE ${schema}.${table} SET (autovacuum_enabled = off)`);
    }
    const handle = async (): Promise<void> => {
      for (let done = 0; done < EVENTS; done += BATCH) {
        const leases = await receive(store, worker, BATCH);
        await Promise.all(leases.map((lease) => store.complete(lease)));
      }
    };
    const position = async (): Promise<number> => {
      const text = `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS bytes`;
      const [row] = await inboxes.query<{ bytes: string }>(text);
      return Number(row!.bytes);
    };
    // The first write of a page after a checkpoint logs the whole page.
    await handle();
    const before = await position();
    await handle();
    const perEvent = ((await position()) - before) / EVENTS;
    expect(perEvent).toBeGreaterThan(400);
    expect(perEvent).toBeLessThanOrEqual(COSTS.walBytes);
  });
});

describe('receive() in PostgreSQL', () => {
  const outcomes = (receipts: readonly StoreReceipt[]): string[] =>
    receipts.map(({ outcome, id }) => `${outcome} ${id}`);

  it('receive() stores an event even if the batch has a duplicate with the same id and another transaction', async () => {
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
    // Times are in whole milliseconds. Therefore events from the same millisecond as a registration are not checked.
    const rows = await inboxes.query<{ wrong: number }>(`
      SELECT count(*)::integer AS wrong FROM ${schema}.event e
       WHERE (SELECT count(*) FROM ${schema}.delivery d WHERE d.event = e.seq) <>
             (SELECT count(*) FROM ${schema}.handler h WHERE h.first_seen < e.received_at)
         AND NOT EXISTS (SELECT FROM ${schema}.handler h WHERE h.first_seen = e.received_at)`);
    expect(rows).toEqual([{ wrong: 0 }]);
  });

  it('receive() stores texts with characters that PostgreSQL rejects, such as NUL and lone surrogates', async () => {
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
      expect(await store.claim({ workerId: await startWorker(store), wanted })).toHaveLength(1);
    }
  });

  it('receive() stores the other events of a batch if one event cannot be stored', async () => {
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
