import { describe, expect, it } from '@jest/globals';
import type { Client } from 'pg';
import { POLL_HANDLER } from '../../libs/payments/src/inbox/store/expectation-store.js';
import type {
  InboxStore,
  NewExpectation,
  PollOutcome,
} from '../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../support/postgres/postgres-inboxes.js';
import { RecordingPool } from '../support/postgres/recording-pool.js';

const PENDING: PollOutcome = { result: 'pending', detail: null, next: 60_000 };

const order = (reference: string, given: Partial<NewExpectation> = {}): NewExpectation => ({
  company: 'default',
  reference,
  transactionId: null,
  dueBy: null,
  schedule: [60_000],
  firstPollInMs: 60_000,
  ...given,
});

const paid = (id: string, transactionId: string, given: Parameters<typeof incoming>[1] = {}) =>
  incoming(id, { orderingKey: transactionId, onceKey: transactionId, fulfils: true, ...given });

describe('expectations in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  const found = async (store: InboxStore, reference: string) =>
    (await store.expectations.find('default', reference))!;
  const begin = async (): Promise<Client> => {
    const client = await inboxes.openClient();
    await client.query('BEGIN');
    return client;
  };
  const claimPoll = async (store: InboxStore) => {
    const wanted = [{ handler: POLL_HANDLER, limit: 1 }];
    const [lease] = await store.claim({ worker: await startWorker(store), wanted });
    return lease!;
  };

  it.each([
    ['a client of pg', (client: Client): unknown => client],
    [
      'an object whose query resolves with rows, as an EntityManager of TypeORM',
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
  ])('EX-01 expect and attach take %s as tx', async (_, toTx) => {
    const { expectations } = await inboxes.open();
    const client = await begin();
    const tx = toTx(client);
    const dueBy = new Date('2030-01-02T03:04:05.678Z');
    const one = order('o\uE000rder', { transactionId: 'tx', dueBy, schedule: [1, 2.5] });
    expect(await expectations.expect(one, tx)).toBe(true);
    expect(await expectations.expect(one, tx)).toBe(false);
    expect(await expectations.attach('default', one.reference, 'tx', tx)).toBe('attached');
    expect(await expectations.attach('default', one.reference, 'other', tx)).toBe('conflict');
    expect(await expectations.attach('default', 'none', 'tx', tx)).toBe('unknown');
    expect(await expectations.find('default', one.reference)).toBeUndefined();
    await client.query('COMMIT');
    const { firstPollInMs: _ms, ...fields } = one;
    expect(await expectations.find('default', one.reference)).toMatchObject(fields);
    const list = (search: string) =>
      expectations.list({ filter: { search }, limit: 9, after: null });
    expect((await list('o\uE000r')).expectations).toMatchObject([fields]);
  });

  it.each([[null], [{}], ['transaction'], [{ query: 'SELECT' }]])(
    'EX-01 expect rejects the tx %j with a TypeError',
    async (tx) => {
      const { expectations } = await inboxes.open();
      await expect(expectations.expect(order('a'), tx)).rejects.toThrow(TypeError);
      await expect(expectations.attach('default', 'a', 'tx', tx)).rejects.toThrow(
        /query\(text, values\)/,
      );
    },
  );

  it('EX-01 expect rejects with the error of the application transaction', async () => {
    const { expectations } = await inboxes.open();
    const client = await begin();
    await client.query('SELECT 1/0').catch(() => {});
    await expect(expectations.expect(order('a'), client)).rejects.toMatchObject({ code: '25P02' });
    const silent = { query: async () => [] };
    await expect(expectations.expect(order('a'), silent)).rejects.toThrow(/resolve with the rows/);
  });

  it('EX-05 receive, settlePoll and cancel do not wait for a transaction that has attached', async () => {
    const store = await inboxes.open();
    for (const reference of ['a', 'b', 'c']) {
      await store.expectations.expect(order(reference, { firstPollInMs: 0 }));
    }
    const lease = await claimPoll(store);
    const client = await begin();
    for (const reference of ['a', 'b', 'c']) {
      await store.expectations.attach('default', reference, `tx ${reference}`, client);
    }
    expect(await store.expectations.settlePoll(lease, PENDING)).toMatchObject({ settled: true });
    await store.receive([paid('e', 'tx b', { reference: 'b' })]);
    expect(await store.expectations.cancel('default', 'c')).toBe(true);
    await client.query('COMMIT');
    expect(await found(store, 'a')).toMatchObject({
      state: 'waiting',
      transactionId: 'tx a',
      polls: 1,
    });
    expect(await found(store, 'b')).toMatchObject({ state: 'fulfilled', transactionId: 'tx b' });
  });

  it('EX-04 a webhook before the commit of its expectation fulfils it with the first poll', async () => {
    const store = await inboxes.open();
    const client = await begin();
    await store.expectations.expect(order('a', { transactionId: 'tx', firstPollInMs: 0 }), client);
    await store.receive([paid('webhook', 'tx')]);
    await client.query('COMMIT');
    expect((await found(store, 'a')).state).toBe('waiting');
    const lease = await claimPoll(store);
    expect(lease).toMatchObject({ source: 'expectation', raw: Buffer.from('{}') });
    const poll = paid('poll:tx', 'tx', { source: 'poll', raw: Buffer.from('{"poll":1}') });
    expect(await store.receive([poll])).toMatchObject([{ outcome: 'duplicate', id: 'webhook' }]);
    await store.expectations.settlePoll(lease, { ...PENDING, result: 'event' });
    expect(await found(store, 'a')).toMatchObject({
      state: 'fulfilled',
      nextPollAt: null,
      fulfilled: { by: 'webhook', eventId: 'webhook' },
    });
  });

  it('EX-04 a poll with the id and type of an earlier one but other bytes fulfils, and other events do not', async () => {
    const store = await inboxes.open();
    const poll = (time: number, id = 'poll:tx') =>
      paid(id, 'tx', { source: 'poll', raw: Buffer.from(`{"time":${time}}`) });
    await store.receive([poll(1), paid('same id', 'elsewhere')]);
    await store.expectations.expect(order('a', { transactionId: 'tx' }));
    const conflicts = [
      paid('same id', 'tx', { onceKey: null, raw: Buffer.from('other') }),
      paid('poll:tx', 'tx', { onceKey: null, eventType: 'other', raw: Buffer.from('other') }),
    ];
    expect(await store.receive(conflicts)).toMatchObject([
      { outcome: 'conflict' },
      { outcome: 'conflict' },
    ]);
    expect((await found(store, 'a')).state).toBe('waiting');
    await store.receive([poll(2)]);
    expect(await found(store, 'a')).toMatchObject({
      fulfilled: { by: 'poll', eventId: 'poll:tx' },
    });
  });

  it('EX-14 receive, find, settlePoll and cancel each run one statement', async () => {
    const pool = new RecordingPool({ connectionString: inboxes.connectionString });
    const store = await inboxes.open({ pool });
    // A notification is sent later, by the first call of expect.
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
      () => store.expectations.settlePoll(lease, PENDING),
      () => store.expectations.cancel('default', 'b'),
    ];
    for (const call of calls) expect(await statements(call)).toBe(1);
    expect(await found(store, 'a')).toMatchObject({ state: 'fulfilled', polls: 1 });
    await inboxes.close();
    await pool.end();
  });

  it('EX-03 expect and pollNow wake the workers of other processes for a poll that is due soon', async () => {
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
