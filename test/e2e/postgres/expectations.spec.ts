import { describe, expect, it } from '@jest/globals';
import type { Client } from 'pg';
import type {
  IncomingEvent,
  InboxStore,
  NewExpectation,
  PollLease,
  PollOutcome,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';
import { RecordingPool } from '../../support/postgres/recording-pool.js';

const TYPE = 'transaction.completed';
const PENDING: PollOutcome = { result: 'pending', detail: null, next: 60_000 };

const order = (reference: string, given: Partial<NewExpectation> = {}): NewExpectation => ({
  company: 'default',
  reference,
  transactionId: null,
  dueInMs: null,
  schedule: [60_000],
  firstPollInMs: 60_000,
  ...given,
});

const paid = (id: string, transactionId: string, given: Parameters<typeof incoming>[1] = {}) =>
  incoming(id, { orderingKey: transactionId, oncePerTransaction: true, fulfils: true, ...given });

describe('expectations in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  const found = async (store: InboxStore, reference: string) =>
    (await store.expectations.find('default', reference))!;
  const begin = async (): Promise<Client> => {
    const client = await inboxes.openClient();
    await client.query('BEGIN');
    return client;
  };
  const claimPoll = async ({ expectations }: InboxStore) =>
    (await expectations.claimPolls({ limit: 1, leaseMs: 60_000 }))[0]!;
  const settle = async (
    { expectations }: InboxStore,
    lease: PollLease,
    outcome: PollOutcome = PENDING,
    event: IncomingEvent | null = null,
  ) => expectations.settlePoll({ lease, outcome, event, eventTypes: [TYPE], keepLost: false });

  it.each([
    ['a client of pg', (client: Client): unknown => client],
    [
      'an object whose query() resolves with rows, like an EntityManager of TypeORM',
      (client: Client): unknown => ({
        manager: client,
        async query(this: { manager: Client }, text: string, values: string[]) {
          return (await this.manager.query(text, values)).rows as unknown[];
        },
      }),
    ],
    [
      'an object whose driver returns every value as text',
      (client: Client): unknown => ({
        query: async (text: string, values: string[]) => {
          const types = { getTypeParser: () => (value: unknown) => value };
          return client.query({ text, values, types } as never);
        },
      }),
    ],
  ])('EX-01 expect() accepts %s as tx', async (_, toTx) => {
    const { expectations } = await inboxes.open();
    const client = await begin();
    const tx = toTx(client);
    const one = order('o\uE000rder', { transactionId: 'tx', dueInMs: 5678, schedule: [1, 2.5] });
    expect(await expectations.expect(one, tx)).toBe(true);
    expect(await expectations.expect(one, tx)).toBe(false);
    expect(await expectations.find('default', one.reference)).toBeUndefined();
    await client.query('COMMIT');
    const { firstPollInMs: _ms, dueInMs: _due, ...fields } = one;
    const stored = (await expectations.find('default', one.reference))!;
    expect(stored).toMatchObject(fields);
    expect(stored.dueBy!.getTime() - stored.createdAt.getTime()).toBe(5678);
    const list = (search: string) =>
      expectations.list({ filter: { search }, limit: 9, after: null });
    expect((await list('o\uE000r')).expectations).toMatchObject([fields]);
  });

  it.each([[null], [{}], ['transaction'], [{ query: 'SELECT' }]])(
    'EX-01 expect() rejects the tx %j with a TypeError',
    async (tx) => {
      const { expectations } = await inboxes.open();
      const rejected = expectations.expect(order('a'), tx);
      await expect(rejected).rejects.toThrow(/query\(text, values\)/);
      await expect(rejected).rejects.toBeInstanceOf(TypeError);
    },
  );

  it('EX-01 expect() rejects with the error of the transaction of the application', async () => {
    const { expectations } = await inboxes.open();
    const client = await begin();
    await client.query('SELECT 1/0').catch(() => {});
    await expect(expectations.expect(order('a'), client)).rejects.toMatchObject({ code: '25P02' });
    const silent = { query: async () => [] };
    await expect(expectations.expect(order('a'), silent)).rejects.toThrow(/resolve with the rows/);
  });

  it('EX-05 receive(), settlePoll() and cancel() do not wait for an open transaction that has called expect()', async () => {
    const store = await inboxes.open();
    for (const reference of ['a', 'b', 'c', 'd']) {
      await store.expectations.expect(order(reference, { firstPollInMs: 0 }));
    }
    await store.expectations.cancel('default', 'd');
    const lease = await claimPoll(store);
    const client = await begin();
    for (const reference of ['a', 'b', 'c', 'd', 'e']) {
      const isNew = await store.expectations.expect(order(reference), client);
      expect(isNew).toBe(reference === 'd' || reference === 'e');
    }
    expect(await settle(store, lease)).toMatchObject({ settled: true });
    await store.receive([
      paid('e', 'tx b', { reference: 'b' }),
      paid('f', 'tx d', { reference: 'd' }),
    ]);
    expect(await store.expectations.cancel('default', 'c')).toBe(true);
    await client.query('COMMIT');
    expect(await found(store, 'a')).toMatchObject({ state: 'waiting', polls: 1 });
    expect(await found(store, 'b')).toMatchObject({ state: 'fulfilled' });
    expect(await found(store, 'd')).toMatchObject({ state: 'waiting', fulfilled: null });
  });

  it('EX-04 an event that arrives before its expectation is committed fulfils the expectation at the first poll', async () => {
    const store = await inboxes.open();
    const client = await begin();
    await store.expectations.expect(order('a', { transactionId: 'tx', firstPollInMs: 0 }), client);
    await store.receive([paid('webhook', 'tx')]);
    await client.query('COMMIT');
    expect((await found(store, 'a')).state).toBe('waiting');
    const lease = await claimPoll(store);
    const poll = paid('poll:tx', 'tx', { source: 'poll', raw: Buffer.from('{"poll":1}') });
    const outcome = { result: 'event', detail: null, next: 'end' } as const;
    const { receipt } = await settle(store, lease, outcome, poll);
    expect(receipt).toMatchObject({ outcome: 'duplicate', id: 'webhook' });
    expect(await found(store, 'a')).toMatchObject({
      state: 'fulfilled',
      nextPollAt: null,
      fulfilled: { by: 'webhook', eventId: 'webhook' },
    });
  });

  it('EX-14 receive(), find(), settlePoll() and cancel() run one statement each', async () => {
    const pool = new RecordingPool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ pool });
    // Notifications are not counted, because the first call of expect() sends its notification later.
    const count = (): number => pool.recorded.filter(({ text }) => !/pg_notify/.test(text)).length;
    const statements = async (work: () => Promise<unknown>): Promise<number> => {
      const before = count();
      await work();
      return count() - before;
    };
    await store.expectations.expect(order('a', { transactionId: 'tx', firstPollInMs: 0 }));
    await store.expectations.expect(order('b'));
    const lease = await claimPoll(store);
    const calls = [
      () => store.receive([incoming('one', { handlers: [] })]),
      () => store.receive([paid('two', 'tx', { handlers: [] })]),
      () => found(store, 'a'),
      () => settle(store, lease),
      () => store.expectations.cancel('default', 'b'),
    ];
    for (const call of calls) expect(await statements(call)).toBe(1);
    expect(await found(store, 'a')).toMatchObject({ state: 'fulfilled', polls: 1 });
    await inboxes.close();
    await pool.end();
  });

  it('EX-06 EX-07 settlePoll() decides again if an event or a cancellation arrives between its statements', async () => {
    const schema = freshSchema();
    const pool = new RecordingPool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ schema, pool });
    const other = await inboxes.open({ schema });
    const settleDuring = async (
      tx: string,
      meanwhile: () => Promise<unknown>,
      { result = 'unknown', ...given }: Partial<IncomingEvent & Pick<PollOutcome, 'result'>> = {},
      isCancelled = false,
    ) => {
      await store.expectations.expect(order(tx, { transactionId: tx, firstPollInMs: 0 }));
      const lease = await claimPoll(store);
      if (isCancelled) await store.expectations.cancel('default', tx);
      let left = 1;
      pool.before = async (text) => {
        if (text.includes('settle_poll') && (left -= 1) === 0) await meanwhile();
      };
      const event = paid(`poll ${tx}`, tx, { fulfils: false, eventType: 'late', ...given });
      const settled = await settle(store, lease, { result, detail: null, next: 'overdue' }, event);
      expect(left).toBeLessThan(0);
      const isStored = (await other.find('default', event.id)) !== undefined;
      return [settled.result, settled.state, settled.receipt, isStored];
    };
    const receive = (tx: string) => () => other.receive([paid(`webhook ${tx}`, tx)]);
    const declined = { result: 'event', eventType: 'transaction.declined', fulfils: true } as const;
    expect(await settleDuring('a', receive('a'), declined)).toEqual([
      'contradiction',
      'fulfilled',
      null,
      false,
    ]);
    expect(await settleDuring('d', receive('d'), declined, true)).toEqual([
      'contradiction',
      'cancelled',
      null,
      false,
    ]);
    expect(await settleDuring('b', receive('b'))).toEqual(['unknown', 'fulfilled', null, false]);
    const cancel = () => other.expectations.cancel('default', 'c');
    expect(await settleDuring('c', cancel)).toEqual(['unknown', 'cancelled', null, false]);
    await inboxes.close();
    await pool.end();
  });

  it('EX-03 expect() and pollNow() wake the workers of other processes for a poll that is due soon', async () => {
    const schema = freshSchema();
    const options = { schema, pollMs: 60_000 };
    const [store, other] = [await inboxes.open(options), await inboxes.open(options)];
    let wakes = 0;
    let woken = (): void => {};
    other.onWake(() => {
      wakes += 1;
      woken();
    });
    const wakeAfter = async (work: () => Promise<unknown>): Promise<void> => {
      const waking = new Promise<void>((resolve) => (woken = resolve));
      await work();
      await waking;
    };
    // The listener wakes once when it has connected.
    await wakeAfter(async () => {});
    await wakeAfter(() => store.expectations.expect(order('a', { firstPollInMs: 1000 })));
    await wakeAfter(() => store.expectations.pollNow([order('a')], [0]));
    expect(wakes).toBeGreaterThanOrEqual(3);
  });
});
