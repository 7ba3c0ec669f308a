import { describe, expect, it } from '@jest/globals';
import type {
  ClaimedDelivery,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  claim,
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

const SETTLED = { settled: true, nextDue: false };
const LOST = { settled: false, nextDue: false };
const SETTLED_NEXT_DUE = { settled: true, nextDue: true };

describe('outcomes in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

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

  it('outcomes of the same moment share one transaction', async () => {
    const ids = Array.from({ length: 40 }, (_, n) => `e${n}`);
    const { schema, store, leases } = await claimed(...ids);
    const settled = await Promise.all(leases.map((lease) => store.complete(lease)));
    expect(settled).toEqual(leases.map(() => SETTLED));
    const [row] = await inboxes.query<{ transactions: string; done: string }>(
      `SELECT count(DISTINCT xmin::text) AS transactions, count(*) AS done
         FROM ${schema}.delivery WHERE state = 'done'`,
    );
    expect(row).toEqual({ transactions: '1', done: '40' });
  });

  it('complete() and fail() in one statement write the outcome of each delivery', async () => {
    const { store, leases } = await claimed('done', 'again', 'dead', 'stale', 'twice');
    const [done, again, dead, stale, twice] = leases as [ClaimedDelivery, ...ClaimedDelivery[]];
    const results = await Promise.all([
      store.complete(done),
      store.fail(again!, { error: 'later\0', retryInMs: 60_000 }),
      store.fail(dead!, { error: 'never', retryInMs: null }),
      store.complete({ ...stale!, token: stale!.token + 1 }),
      store.complete(twice!),
      store.complete(twice!),
    ]);
    expect(results).toEqual([SETTLED, SETTLED, SETTLED, LOST, SETTLED, LOST]);
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
    expect(await stateOf(store, 'stale')).toEqual(['running', 1, null, false, false, []]);
    expect(await stateOf(store, 'twice')).toEqual([
      'done',
      1,
      null,
      false,
      true,
      [[1, 'done', null]],
    ]);
  });

  it('complete() resolves while another transaction has locked another delivery of the batch', async () => {
    const { schema, store, leases } = await claimed('locked', 'free');
    const holder = await inboxes.openClient();
    try {
      await holder.query('BEGIN');
      await holder.query(
        `SELECT FROM ${schema}.delivery d JOIN ${schema}.event e ON e.seq = d.event
          WHERE e.id = 'locked' FOR UPDATE OF d`,
      );
      const [locked, free] = leases.map((lease) => store.complete(lease));
      expect(await free).toEqual(SETTLED);
      expect(await stateOf(store, 'locked')).toMatchObject(['running', 1, null, false, false, []]);
      await holder.query('ROLLBACK');
      expect(await locked).toEqual(SETTLED);
    } finally {
      await holder.end();
    }
  });

  it('complete() makes the next delivery of each key claimable', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const events = ['a', 'b'].flatMap((key) =>
      [1, 2, 3].map((n) => incoming(`${key}${n}`, { orderingKey: key })),
    );
    await store.receive([...events, incoming('free')]);
    const leases = await claim(store);
    expect(leases.map(({ id }) => id)).toEqual(['a1', 'b1', 'free']);
    expect(await claim(store)).toEqual([]);
    const [a, b, free] = await Promise.all(leases.map((lease) => store.complete(lease)));
    expect([a, b, free]).toEqual([SETTLED_NEXT_DUE, SETTLED_NEXT_DUE, SETTLED]);
    expect((await claim(store)).map(({ id }) => id)).toEqual(['a2', 'b2']);
  });

  it('fail() accepts a delay of any length', async () => {
    const { store, leases } = await claimed('a', 'b');
    const settled = await Promise.all([
      store.fail(leases[0]!, { error: 'no', retryInMs: 1e300 }),
      store.complete(leases[1]!),
    ]);
    expect(settled).toEqual([SETTLED, SETTLED]);
    expect(await store.nextDueInMs(['book'])).toBeGreaterThan(99 * 365 * 24 * 3_600_000);
  });

  it('IN-13 complete() succeeds after a late heartbeat, unless another worker has freed the delivery', async () => {
    const { schema, store, leases } = await claimed('late', 'freed');
    const workers = `UPDATE ${schema}.worker SET heartbeat_at = heartbeat_at - 3600000`;
    await inboxes.query(workers);
    expect(await store.complete(leases[0]!)).toEqual(SETTLED);
    await store.heartbeat(await startWorker(store));
    expect(await store.complete(leases[1]!)).toEqual(LOST);
    expect((await store.find('default', 'freed'))!.deliveries[0]).toMatchObject({
      state: 'pending',
      attempts: 0,
      history: [{ attempt: 1, outcome: 'lost' }],
    });
  });

  it('IN-13 an attempt from before a failover that lost commits settles nothing that was leased after it', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const assign = { worker: await startWorker(store), handlers: ['book'] };
    const receive = async (id: string): Promise<ClaimedDelivery> => {
      const [receipt] = await store.receive([incoming(id, { assign })]);
      return receipt!.claimed[0]!;
    };
    const lost = await receive('lost');
    await inboxes.query(`
      DELETE FROM ${schema}.event; DELETE FROM ${schema}.delivery;
      SELECT setval('${schema}.event_seq_seq', ${lost.seq}, false), pg_sleep(0.003)`);
    const later = await receive('later');
    expect(later.seq).toBe(lost.seq);
    expect(await store.complete(lost)).toEqual(LOST);
    await expect(store.commit(lost, () => {})).rejects.toMatchObject({ code: 'lease_lost' });
    await store.release(later);
    const [before] = await claim(store);
    await inboxes.query(`
      UPDATE ${schema}.delivery SET state = 'pending', worker = NULL, attempts = 0, due_at = started_at, token = ${later.token};
      SELECT pg_sleep(0.003)`);
    const [after] = await claim(store);
    expect(await store.fail(before!, { error: 'late', retryInMs: 0 })).toEqual(LOST);
    expect(await store.complete(after!)).toEqual(SETTLED);
  });
});
