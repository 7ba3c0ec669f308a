import { beforeAll, describe, expect, it } from '@jest/globals';
import type { Client } from 'pg';
import type {
  EventFilter,
  EventPage,
  InboxStore,
  StoredEvent,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  idsOf,
  incoming,
  pagesReadBy,
  startWorker,
  usePostgresInboxes,
  NOW_MS,
} from '../../support/postgres/postgres-inboxes.js';
import { RecordingPool } from '../../support/postgres/recording-pool.js';

const COUNT = 30_000;

describe('PostgreSQL with 30,000 events and 600 failed deliveries', () => {
  let pool: RecordingPool;
  let store: InboxStore;
  let client: Client;
  const inboxes = usePostgresInboxes({ keepOpen: true, tearDown: () => pool.end() });
  beforeAll(async () => {
    pool = new RecordingPool({ connectionString: inboxes.connectionString });
    store = await inboxes.open({ schema: 'many', pool });
    await startWorker(store);
    client = await inboxes.openClient();
    for (const table of ['event', 'delivery']) {
      await inboxes.query(`ALTER TABLE many.${table} SET (autovacuum_enabled = off)`);
    }
    // PostgreSQL plans the functions now, while the tables are empty.
    await list({ search: 'evt' });
    await store.failures();
    await inboxes.query(`
      WITH stored AS (
        INSERT INTO many.event (company, id, event_type, source, occurred_at, received_at, digest, raw, once, stale, unhandled,
                                ordering_key, reference, amount)
        SELECT CASE n % 3 WHEN 0 THEN 'north' ELSE 'default' END, 'evt ' || md5(n::text), 'transaction.completed',
               'webhook', ${NOW_MS}, ${NOW_MS} + (n + n * 7919 % 600) * 100, '', '{}', n % 2 = 0, false, false,
               'txn ' || md5('t' || n),
               'order ' || lpad(n::text, 5, '0'), n || '.50'
          FROM generate_series(1, ${COUNT}) n RETURNING seq, reference
      )
      INSERT INTO many.delivery (event, handler, state, failed_at, last_error)
      SELECT seq, handler, CASE WHEN seq % 100 = 0 THEN 'dead' ELSE 'done' END, ${NOW_MS},
             CASE WHEN seq % 100 = 0 THEN 'HTTP 503 for ' || reference END
        FROM stored CROSS JOIN (VALUES ('book'), ('ship')) AS h (handler)`);
  });

  const list = (
    filter: EventFilter,
    {
      order = 'newest',
      after = null,
      limit = 50,
    }: { order?: 'newest' | 'oldest'; after?: string | null; limit?: number } = {},
  ): Promise<EventPage> => store.list({ filter, order, limit, after });

  /** Returns how many pages of the database all statements of the operation read. */
  async function pagesOf(operate: () => Promise<unknown>): Promise<number> {
    pool.recorded.length = 0;
    await operate();
    const statements = pool.recorded.splice(0);
    // The first call makes the plans, which reads pages too.
    await pagesReadBy(client, statements);
    return pagesReadBy(client, statements);
  }

  const references = async (filter: EventFilter, options = {}): Promise<(string | null)[]> =>
    (await list(filter, options)).events.map(({ reference }) => reference);

  /** Returns the references on all pages of the list. */
  async function allReferences(filter: EventFilter): Promise<(string | null)[]> {
    const all: (string | null)[] = [];
    let after: string | null = null;
    do {
      const page: EventPage = await list(filter, { after, limit: 1000 });
      all.push(...page.events.map(({ reference }) => reference));
      after = page.next;
    } while (after !== null);
    return all;
  }

  it('a search for one event reads few pages, with and without statistics of the tables', async () => {
    const transaction = (await list({ search: 'order 00777' })).events[0]!.orderingKey!;
    const searches = {
      reference: 'ORDER 29999',
      transaction,
      id: `evt ${'0'.repeat(40)}`,
      nothing: 'no event has this text',
      percent: 'order%',
    };
    for (const statistics of [false, true]) {
      if (statistics) await inboxes.query('VACUUM ANALYZE');
      for (const [name, search] of Object.entries(searches)) {
        const pages = await pagesOf(() => list({ search }));
        expect([name, pages < 400, pages]).toEqual([name, true, pages]);
      }
      expect(await pagesOf(() => store.failures())).toBeLessThan(5000);
      expect(await pagesOf(() => store.eventsOf('default', transaction))).toBeLessThan(100);
      expect(await pagesOf(() => store.eventsOf('default', 'order 29999'))).toBeLessThan(100);
      // The statements that compare amounts read each event once, and several events share one page.
      expect(await pagesOf(() => list({ search: '777.50' }))).toBeLessThan(COUNT / 2);
    }
    expect(await references({ search: transaction })).toHaveLength(1);
    expect(await references({ search: 'order 29999' })).toEqual(['order 29999']);
    expect(await references({ search: 'order%' })).toEqual([]);
    expect(await references({ search: '777.5' })).toEqual(['order 00777']);
    expect(
      (await store.eventsOf('default', 'order 29999')).map(({ reference }) => reference),
    ).toEqual(['order 29999']);
  });

  it('a search that finds thousands of events returns them in the order of receipt', async () => {
    // The events whose reference starts with "order 0" are the oldest third of all events.
    const all = await allReferences({ search: 'order 0' });
    expect([all.length, all[0], all[50], all.at(-1)]).toEqual([
      9999,
      'order 09999',
      'order 09949',
      'order 00001',
    ]);
    const oldest = await references({ search: 'order 0' }, { order: 'oldest' });
    expect(oldest.slice(0, 2)).toEqual(['order 00001', 'order 00002']);
    expect((await references({ search: 'order ' }))[0]).toBe('order 30000');
    expect(await allReferences({ search: 'order 0', company: 'nobody' })).toEqual([]);
    const north = await allReferences({ search: 'order 0', company: 'north' });
    expect([north.length, north[0]]).toEqual([3333, 'order 09999']);
    expect(await references({ search: 'order 0', state: 'dead' })).toHaveLength(50);
    expect((await references({ search: 'order 0', state: 'dead' }))[0]).toBe('order 09900');
  });

  it('list() returns the events with a dead delivery, newest first, even if there are only a few such events', async () => {
    const newest = await references({ state: 'dead' });
    expect([newest[0], newest.length]).toEqual(['order 30000', 50]);
    expect(await allReferences({ state: 'dead', company: 'north' })).toEqual(
      Array.from(
        { length: COUNT / 300 },
        (_, n) => `order ${String(COUNT - n * 300).padStart(5, '0')}`,
      ),
    );
  });

  it.each<[string, EventFilter]>([
    ['company', { company: 'nobody' }],
    ['event type', { eventType: 'nothing' }],
    ['handler', { handler: 'nobody' }],
    ['done delivery of a handler', { state: 'done', handler: 'nobody' }],
    ['search that finds thousands', { search: 'order 0', company: 'nobody' }],
  ])('list() ends a page after 20,000 events outside the filter: %s', async (_, filter) => {
    const first = await list(filter);
    expect(first.events).toEqual([]);
    const rows = await inboxes.query(
      `SELECT count(*) AS read FROM many.event WHERE seq >= ${first.next!}`,
    );
    expect(rows).toEqual([{ read: '20000' }]);
    const second = await list(filter, { after: first.next });
    expect(second).toEqual({ events: [], next: null });
    // An event has at most 4 index entries, and several events share one page of the table.
    expect(await pagesOf(() => list(filter))).toBeLessThan(100_000);
  });

  describe('with times of receipt that differ from the order of numbers by up to a minute', () => {
    const OTHERS: readonly EventFilter[] = [
      {},
      { company: 'north' },
      { eventType: 'nothing' },
      { handler: 'book' },
      { search: 'order 0' },
      { search: 'order 2999' },
      ...(['pending', 'running', 'dead', 'done', 'skipped', 'unhandled', 'stale'] as const).map(
        (state) => ({ state }),
      ),
    ];
    const at = async (share: number): Promise<Date> => {
      const [row] = await inboxes.query<{ ms: number }>(
        `SELECT (min(received_at) + ${share} * (max(received_at) - min(received_at)))::float8 AS ms
           FROM many.event`,
      );
      return new Date(Math.round(row!.ms));
    };

    it.each(
      OTHERS.flatMap((filter) =>
        (['newest', 'oldest'] as const).map(
          (order) => [JSON.stringify(filter), order, filter] as const,
        ),
      ),
    )(
      'IN-42 list() with a time range and the filter %s, %s first, reads a bounded number of rows',
      async (_, order, filter) => {
        const [from, to] = [await at(0.5), await at(0.7)];
        const all = new Map<string, StoredEvent>();
        for (let after: string | null | undefined; after !== null;) {
          const page: EventPage = await list(filter, { order, after: after ?? null, limit: 1000 });
          for (const event of page.events) all.set(event.id, event);
          after = page.next;
        }
        // A single bound is tested without a filter, because only the order matters for a single bound.
        const windows: readonly Pick<EventFilter, 'from' | 'to'>[] =
          Object.keys(filter).length === 0 ? [{ from }, { to }, { from, to }] : [{ from, to }];
        for (const times of windows) {
          const found: string[] = [];
          for (let after: string | null | undefined; after !== null;) {
            const options = { order, after: after ?? null, limit: 1000 };
            const page = await list({ ...filter, ...times }, options);
            found.push(...idsOf(page.events));
            after = page.next;
          }
          const within = [...all.values()].filter(
            ({ receivedAt }) =>
              (!times.from || receivedAt >= from) && (!times.to || receivedAt < to),
          );
          expect(found).toEqual(idsOf(within));
        }
        expect(await pagesOf(() => list({ ...filter, from, to }, { order }))).toBeLessThan(100_000);
      },
    );

    it('list() with a time range starts at the range, and not at the first event', async () => {
      expect((await list({ from: await at(0.9) }, { order: 'oldest' })).events).toHaveLength(50);
      expect((await list({ to: await at(0.1) })).events).toHaveLength(50);
      expect(
        await pagesOf(() => list({ from: new Date(8.64e15) }, { order: 'oldest' })),
      ).toBeLessThan(400);
    });
  });

  it('IN-42 list() reads its rows through an index with any combination of filters', async () => {
    await inboxes.query('VACUUM ANALYZE');
    const times = [{}, { from: new Date(1), to: new Date() }];
    const facts: readonly EventFilter[] = [
      {},
      { company: 'north' },
      { eventType: 'nothing' },
      { source: 'poll' },
      { handler: 'book' },
    ];
    const states = ['pending', 'running', 'dead', 'done', 'skipped', 'unhandled', 'stale'] as const;
    const others = [{}, ...states.map((state) => ({ state }))];
    const searches = [{}, { search: 'order 0' }, { search: '29999' }, { ids: ['a'] }];
    const filters = times.flatMap((time) =>
      facts.flatMap((fact, index) =>
        facts
          .slice(index)
          .flatMap((fact2) =>
            others.flatMap((state) =>
              searches.map((search) => ({ ...time, ...fact, ...fact2, ...state, ...search })),
            ),
          ),
      ),
    );
    expect(filters).toHaveLength(960);
    pool.recorded.length = 0;
    for (const filter of filters) await list(filter);
    const wrong = new Set<string>();
    await client.query('BEGIN');
    for (const { text, values } of pool.recorded.splice(0)) {
      if (/^(BEGIN|COMMIT|SELECT set_config)/.test(text)) continue;
      const { rows } = await client.query({
        text: `EXPLAIN ${text}`,
        values: [...values],
        rowMode: 'array',
      });
      const plan = rows.flat().join('\n');
      if (/Seq Scan on (event|delivery)/.test(plan)) wrong.add(`${text}\n${plan}`);
    }
    await client.query('ROLLBACK');
    expect([...wrong]).toEqual([]);
  }, 300_000);

  it('a search compares all characters of a text that is longer than its index entry', async () => {
    const long = '\u{1F4B3}'.repeat(250);
    for (const end of ['a', 'b']) {
      await store.receive([incoming(`long ${end}`, { orderingKey: `${long}${end}` })]);
    }
    const found = async (search: string) => idsOf((await list({ search })).events);
    expect(await found(`${long}a`)).toEqual(['long a']);
    expect(await found(long)).toEqual([]);
  });
});
