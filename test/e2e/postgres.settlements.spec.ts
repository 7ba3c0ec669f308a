import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Client } from 'pg';
import type { ClaimedDelivery, InboxStore } from '../../libs/payments/src/inbox/inbox-store.js';
import { claim, freshSchema, incoming, PostgresInboxes } from '../support/postgres.inboxes.js';

describe('settlements in PostgreSQL that come together', () => {
  let inboxes: PostgresInboxes;
  beforeAll(async () => {
    inboxes = await PostgresInboxes.start();
  }, 60_000);
  afterEach(() => inboxes.close());
  afterAll(() => inboxes.server.end(), 30_000);

  async function claimed(...ids: string[]): Promise<{
    schema: string;
    store: InboxStore;
    leases: ClaimedDelivery[];
  }> {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    await store.receive(ids.map((id) => incoming(id)));
    return { schema, store, leases: await claim(store, ids.length) };
  }

  const stateOf = async (store: InboxStore, id: string) => {
    const { state, attempts, lastError, dueAt, finishedAt, history } = (await store.find(
      'default',
      id,
    ))!.deliveries[0]!;
    const outcomes = history.map(({ attempt, outcome, error }) => [attempt, outcome, error]);
    return [state, attempts, lastError, dueAt !== null, finishedAt !== null, outcomes];
  };

  it('share one transaction, and its wait for the disk', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `e${n}`);
    const { schema, store, leases } = await claimed(...ids);
    const settled = await Promise.all(leases.map((lease) => store.complete(lease)));
    expect(new Set(settled)).toEqual(new Set([true]));
    const [row] = await inboxes.query<{ transactions: string; done: string }>(
      `SELECT count(DISTINCT xmin::text) AS transactions, count(*) AS done
         FROM ${schema}.deliveries WHERE state = 'done'`,
    );
    expect(row).toEqual({ transactions: '1', done: '40' });
    expect((await store.stats()).deliveries).toEqual([
      { handler: 'book', state: 'done', count: 40 },
    ]);
  });

  it('each have their own outcome', async () => {
    const { store, leases } = await claimed('done', 'again', 'dead', 'stale', 'twice');
    const [done, again, dead, stale, twice] = leases as [ClaimedDelivery, ...ClaimedDelivery[]];
    const answers = await Promise.all([
      store.complete(done),
      store.fail(again!, { error: 'later\0', retryInMs: 60_000 }),
      store.fail(dead!, { error: 'never', retryInMs: null }),
      store.complete({ ...stale!, token: stale!.token + 1 }),
      store.complete(twice!),
      store.complete(twice!),
    ]);
    expect(answers.slice(0, 4)).toEqual([true, true, true, false]);
    expect(new Set(answers.slice(4))).toEqual(new Set([false, true]));
    expect(await stateOf(store, 'done')).toEqual([
      'done',
      1,
      null,
      false,
      true,
      [[1, 'done', null]],
    ]);
    expect(await stateOf(store, 'again')).toEqual([
      'pending',
      1,
      'later\0',
      true,
      false,
      [[1, 'failed', 'later\0']],
    ]);
    expect(await stateOf(store, 'dead')).toEqual([
      'dead',
      1,
      'never',
      false,
      true,
      [[1, 'failed', 'never']],
    ]);
    expect(await stateOf(store, 'stale')).toEqual(['running', 1, null, true, false, []]);
    expect(await stateOf(store, 'twice')).toEqual([
      'done',
      1,
      null,
      false,
      true,
      [[1, 'done', null]],
    ]);
  });

  it('do not wait for one whose delivery a transaction holds', async () => {
    const { schema, store, leases } = await claimed('held', 'free');
    const holder = new Client({ connectionString: inboxes.connectionString });
    await holder.connect();
    try {
      await holder.query('BEGIN');
      await holder.query(
        `SELECT FROM ${schema}.deliveries d JOIN ${schema}.events e ON e.seq = d.event
          WHERE e.id = 'held' FOR UPDATE OF d`,
      );
      const [held, free] = leases.map((lease) => store.complete(lease));
      expect(await free).toBe(true);
      expect(await stateOf(store, 'held')).toMatchObject(['running', 1, null, true, false, []]);
      await holder.query('ROLLBACK');
      expect(await held).toBe(true);
    } finally {
      await holder.end();
    }
  });

  it('do not fail with one that cannot be stored', async () => {
    const { store, leases } = await claimed('a', 'b');
    const [failing, settled] = await Promise.allSettled([
      store.fail(leases[0]!, { error: 'no', retryInMs: 1e300 }),
      store.complete(leases[1]!),
    ]);
    expect(failing).toMatchObject({ status: 'rejected', reason: { code: 'inbox_unavailable' } });
    expect(settled).toEqual({ status: 'fulfilled', value: true });
    expect(await stateOf(store, 'a')).toMatchObject(['running', 1, null, true, false, []]);
  });

  it('are refused where the lease has run out, though nobody has taken the delivery', async () => {
    const { schema, store, leases } = await claimed('late', 'b');
    await inboxes.query(
      `UPDATE ${schema}.deliveries d SET due_at = clock_timestamp() FROM ${schema}.events e
        WHERE e.seq = d.event AND e.id = 'late'`,
    );
    expect(await Promise.all(leases.map((lease) => store.complete(lease)))).toEqual([false, true]);
  });
});
