import { expect, it } from '@jest/globals';
import type { PaymentsApi } from 'nestjs-payments';
import { apiError, FakePaymentsApi, TestRuntime } from 'nestjs-payments/testing';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { eventually } from '../../support/time/waiting.js';
import { company } from '../../support/webhook/webhook-application.js';
import { settled } from '../../support/inbox/settled.js';

const ALL = { from: new Date(0), to: new Date('2999-01-01') };

onMemoryAndSqlite((data) => {
  it('EX-11 sweep() polls every open payment of a period, and changes nothing in a dry run', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.api.respond('GET', '/v1/transactions/{id}', { status: 'processing' });
    await app.expect('late', { dueBy: new Date(0) });
    await eventually(async () => expect((await app.find('late')).state).toBe('overdue'));
    for (const n of [1, 2, 3, 4]) await app.expect(n);
    await app.webhook('t-3');
    await app.expectations.cancel('order-4');
    expect(await app.expectations.sweep({ ...ALL, dryRun: true })).toEqual({
      expectations: 3,
      polls: 0,
    });
    await settled(app.app);
    expect(app.api.calls).toHaveLength(1);
    app.api.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    expect(await app.expectations.sweep(ALL)).toEqual({ expectations: 3, polls: 3 });
    await eventually(async () => {
      for (const n of [1, 2, 'late']) expect((await app.find(n)).state).toBe('fulfilled');
    });
    await settled(app.app);
    expect(app.books.booked.toSorted()).toEqual([
      'transaction.completed t-1 poll',
      'transaction.completed t-2 poll',
      'transaction.completed t-3 webhook',
      'transaction.completed t-late poll',
    ]);
    expect(await app.expectations.sweep(ALL)).toEqual({ expectations: 0, polls: 0 });
  });

  it('EX-11 sweep() leaves out payments that were expected before or after its period', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expect(1);
    const { createdAt } = await app.find(1);
    const later = new Date(createdAt.getTime() + 1);
    const { expectations } = app;
    expect((await expectations.sweep({ from: ALL.from, to: createdAt })).expectations).toBe(0);
    expect((await expectations.sweep({ from: later, to: ALL.to })).expectations).toBe(0);
    const query = { from: createdAt, to: later, dryRun: true };
    expect((await expectations.sweep(query)).expectations).toBe(1);
  });

  it('EX-09 find() finds the payment of a request with an unknown outcome, and no second request is sent', async () => {
    const api = new FakePaymentsApi();
    const find = async (reference: string, calls: PaymentsApi) => {
      const found = await calls.get('/v1/search', { query: { reference } });
      return (found as { id: string | null }).id;
    };
    const reconcile = { ...RECONCILE, find };
    await using app = await ExpectingApplication.start(await data(), { reconcile }, api);
    const outcome = { method: 'POST', path: '/v1/payments' } as const;
    api.respond('POST', '/v1/payments', apiError('outcome_unknown', outcome));
    await app.expectations.expect({ reference: 'order-1' });
    await expect(api.post('/v1/payments')).rejects.toMatchObject({ code: 'outcome_unknown' });
    api.respond('GET', '/v1/search', { id: null }, apiError(503), { id: 't-1' });
    app.respond(1, { status: 'complete' });
    for (const detail of ['found no transaction', 'server_error']) {
      const { lastPoll, state, transactionId } = await app.ask(1);
      expect({ result: lastPoll!.result, state, transactionId }).toEqual({
        result: 'unknown',
        state: 'waiting',
        transactionId: null,
      });
      expect(lastPoll!.detail).toContain(detail);
    }
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled', transactionId: 't-1' });
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
    expect(api.calls.filter(({ method }) => method === 'POST')).toHaveLength(1);
  });
});

it.each([
  ['returns a number', async () => 7, 'it returned a value of type number'],
  ['returns an empty text', async () => '', 'must return a transaction id'],
  [
    'throws',
    () => {
      throw new Error('no search');
    },
    'no search',
  ],
])('EX-09 if find() %s, the result is unknown, and no id is set', async (_, find, detail) => {
  const reconcile = { ...RECONCILE, find: find as () => Promise<string> };
  await using app = await ExpectingApplication.start(MEMORY, { reconcile });
  await app.expectations.expect({ reference: 'order-1' });
  const { lastPoll, transactionId } = await app.ask(1);
  expect(lastPoll).toMatchObject({ result: 'unknown' });
  expect(lastPoll!.detail).toContain(detail);
  expect(transactionId).toBeNull();
});

it('EX-09 without find(), polls of a payment without a transaction id have the result unknown until an id is attached', async () => {
  await using app = await ExpectingApplication.start(MEMORY);
  await app.expectations.expect({ reference: 'order-1' });
  expect((await app.ask(1)).lastPoll!.detail).toContain('"reconcile.find" is not set');
  app.respond(1, { status: 'complete' });
  await app.expectations.attach('order-1', { transactionId: 't-1' });
  expect((await app.ask(1)).state).toBe('fulfilled');
});

it('EX-11 sweep() limits the polls of each company to maxPollsPerSecond', async () => {
  const runtime = new TestRuntime();
  const companies = [company('a', 'whsec_a'), company('b', 'whsec_b')];
  const reconcile = { ...RECONCILE, maxPollsPerSecond: 2 };
  await using app = await ExpectingApplication.start(MEMORY, { companies, reconcile, runtime });
  await app.inbox.pause('@payments/poll');
  for (const n of [1, 2, 3]) await app.expect(n, { company: 'a' });
  await app.expect(4, { company: 'b' });
  await app.expectations.sweep(ALL);
  const dueIn = async (id: string) => {
    const { expectations } = await app.expectations.list({ company: id });
    return expectations.map(({ nextPollAt }) => nextPollAt!.getTime() - runtime.now());
  };
  expect(await dueIn('a')).toEqual([0, 500, 1000]);
  expect(await dueIn('b')).toEqual([0]);
});

it('EX-11 sweep() of a company polls no payment of another company', async () => {
  const companies = [company('a', 'whsec_a'), company('b', 'whsec_b')];
  await using app = await ExpectingApplication.start(MEMORY, { companies });
  await app.expect(1, { company: 'a' });
  await app.expect(2, { company: 'b' });
  app.api.respond('GET', '/v1/transactions/{id}', { status: 'processing' });
  expect(await app.expectations.sweep({ ...ALL, company: 'b' })).toEqual({
    expectations: 1,
    polls: 1,
  });
  await settled(app.app);
  expect(app.api.calls.map((call) => call.company)).toEqual(['b']);
});
