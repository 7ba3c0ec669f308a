import { expect, it } from '@jest/globals';
import { receiver, throwNo } from '../../../../test/support/inbox/receiver-harness.js';
import { logged } from '../../../../test/support/log/captured-log.js';
import { PaymentsApiError } from '../api/api-error.js';
import { HandlerRegistry } from '../events/handler-registry.js';
import type { NewExpectation } from '../inbox/store/inbox-store.js';
import { HandlerCatalogCache } from '../inbox/store/handler-catalog-cache.js';
import { FakePaymentsApi } from '../testing/fake-payments-api.js';
import { Poller } from './poller.js';
import { byStatus, resolveReconcileOptions } from './reconcile-options.js';
import type { ReconcileOptions } from './reconcile-options.js';

const TRANSACTION = '/v1/transactions/{id}';
const interpret = byStatus({ complete: 'transaction.completed' });

/** The polls of a process on a memory store with one expectation, whose poll is claimed. */
async function claimed(
  transactionId = 't-1',
  given: Partial<ReconcileOptions> = {},
  fields: Partial<NewExpectation> = {},
) {
  const harness = receiver();
  const { store, runtime, made } = harness;
  const api = new FakePaymentsApi();
  api.respond('GET', TRANSACTION, { status: 'complete' });
  const catalog = new HandlerCatalogCache(store, new HandlerRegistry());
  const options = resolveReconcileOptions({ interpret, ...given });
  const poller = new Poller(options, store, runtime, null!, api, made, catalog);
  const times = { dueInMs: null, schedule: [1000], firstPollInMs: 0, ...fields };
  await store.expectations.expect({ company: 'c', reference: 'r', transactionId, ...times });
  const { expectations } = store;
  const claim = async () => (await expectations.claimPolls({ limit: 1, leaseMs: 30_000 }))[0]!;
  const first = await claim();
  const poll = async (signal = new AbortController().signal, one = first) =>
    poller.poll(one, signal);
  const find = async () => (await expectations.find('c', 'r'))!;
  return { ...harness, api, poll, find, claim };
}

it('EX-04 if the event of a poll cannot be stored, the poller retries until the lease of the poll ends, and then gives up', async () => {
  const { store, poll, find, runtime } = await claimed();
  let calls = 0;
  store.expectations.settlePoll = async () => {
    calls += 1;
    return throwNo();
  };
  await logged(async (log) => {
    const end = poll();
    for (let n = 0; n < 200; n += 1) {
      runtime.advance(500);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(await end).toEqual({ nextPollInMs: 30_000, refusedMs: 0 });
    expect(log.lines.join()).toContain('could not be stored');
  });
  expect(calls).toBeGreaterThan(5);
  expect(await find()).toMatchObject({ state: 'waiting', polls: 0 });
});

it('EX-06 an aborted poll is released, and the store records no result for the poll', async () => {
  const { poll, find, api, claim } = await claimed();
  const abort = new AbortController();
  api.respond('GET', TRANSACTION, () => {
    abort.abort(new Error('the application closes'));
    throw new Error('aborted');
  });
  await poll(abort.signal);
  expect(await find()).toMatchObject({ state: 'waiting', polls: 0, lastPoll: null });
  expect((await claim()).expectation).toMatchObject({ lostPolls: 0 });
});

it.each([
  ['429', 'rate_limited', 60_000, [60_000, 60_000]],
  ['503', 'server_error', 60_000, [60_000, 0]],
  ['404', 'not_found', undefined, [1000, 0]],
  ['a Retry-After of a day', 'server_error', 86_400_000, [3_600_000, 0]],
] as const)(
  'EX-20 the next poll after %s obeys Retry-After',
  async (_, code, retryAfterMs, ends) => {
    const { poll, api } = await claimed('t-1', {}, { schedule: [1000, 2000], firstPollInMs: 0 });
    api.respond('GET', TRANSACTION, () => {
      const facts = { company: 'c', method: 'GET', path: TRANSACTION, attempts: 1, retryAfterMs };
      throw new PaymentsApiError(code, 'no', facts);
    });
    const { nextPollInMs, refusedMs } = await poll();
    expect(Math.round(nextPollInMs! / 1000) * 1000).toBe(ends[0]);
    expect(refusedMs).toBe(ends[1]);
  },
);

it('IN-41 if the process died in each of the last three polls of a payment, the payment becomes overdue without another request', async () => {
  const { poll, find, api, claim, runtime } = await claimed();
  let last = await find();
  for (let n = 0; n < 3; n += 1) {
    runtime.advance(46_000);
    await claim();
    last = await find();
  }
  expect(last.lostPolls).toBe(3);
  runtime.advance(46_000);
  const one = await claim();
  await poll(undefined, one);
  expect(api.calls).toEqual([]);
  const { state, lastPoll, lostPolls } = await find();
  expect([state, lostPolls]).toEqual(['overdue', 4]);
  expect(lastPoll).toMatchObject({
    result: 'unknown',
    detail: expect.stringContaining('askNow()'),
  });
});

it('EX-07 if the process died in each of the last three polls of a payment, the last poll before the payment becomes overdue sends a request', async () => {
  const { poll, find, api, claim, runtime } = await claimed('t-1', {}, { dueInMs: 600_000 });
  for (let n = 0; n < 2; n += 1) {
    runtime.advance(46_000);
    await claim();
  }
  runtime.advance(46_000);
  await poll(undefined, await claim());
  expect(api.calls).toEqual([]);
  expect(await find()).toMatchObject({ state: 'waiting', lostPolls: 3 });
  runtime.advance(500_000);
  await poll(undefined, await claim());
  expect(await find()).toMatchObject({ state: 'fulfilled' });
});

it('EX-07 an overdue payment is polled again if the service did not answer, until the service answers', async () => {
  const { poll, find, api, claim, runtime } = await claimed('t-1', {}, { dueInMs: 0 });
  const facts = { company: 'c', method: 'GET', path: TRANSACTION, attempts: 1 };
  const fails = () => {
    throw new PaymentsApiError('server_error', 'no', facts);
  };
  api.respond('GET', TRANSACTION, fails, fails, { status: 'complete' });
  await poll();
  expect(await find()).toMatchObject({ state: 'overdue', lastPoll: { result: 'unknown' } });
  for (let n = 0; n < 2; n += 1) {
    const { nextPollAt } = await find();
    const waitMs = nextPollAt!.getTime() - runtime.now();
    expect(waitMs).toBeGreaterThan(0.89 * 3_600_000);
    runtime.advance(waitMs);
    await poll(undefined, await claim());
  }
  expect(await find()).toMatchObject({ state: 'fulfilled', polls: 3 });
});

it('EX-07 an overdue payment that the customer has not paid is not polled again', async () => {
  const { poll, find, api } = await claimed('t-1', {}, { dueInMs: 0 });
  api.respond('GET', TRANSACTION, { status: 'processing' });
  await poll();
  expect(await find()).toMatchObject({ state: 'overdue', nextPollAt: null });
});

it('EX-06 the signal of the call to the service is aborted when the signal of the poll is aborted', async () => {
  const { poll, api } = await claimed();
  const abort = new AbortController();
  let seen: AbortSignal | undefined;
  const getTransaction = async (_: string, options: { readonly signal?: AbortSignal }) => {
    seen = options.signal;
    return { status: 'processing' };
  };
  api.forCompany = () => ({ getTransaction }) as unknown as FakePaymentsApi;
  await poll(abort.signal);
  expect(seen?.aborted).toBe(false);
  abort.abort();
  expect(seen?.aborted).toBe(true);
});

it('EX-07 an overdue event is stored for a handler that only another process has registered', async () => {
  const { store, runtime, poll, find, api, claim } = await claimed();
  const handlers = [{ name: 'remind', patterns: ['@payments/overdue'] }];
  await store.register({ id: 'w 2', leaseMs: 60_000, handlers });
  api.respond('GET', '/v1/transactions/{id}', { status: 'processing' });
  runtime.advance(46_000);
  await poll(undefined, await claim());
  expect((await find()).state).toBe('overdue');
  const query = {
    filter: { eventType: '@payments/overdue' },
    order: 'newest',
    limit: 10,
    after: null,
  } as const;
  const { events } = await store.list(query);
  expect(events).toMatchObject([{ source: 'overdue', deliveries: [{ handler: 'remind' }] }]);
});

it('EX-04 the event of a transaction with a long id has an id of at most 255 characters', async () => {
  const { store, poll } = await claimed('x'.repeat(255));
  await poll();
  const query = { filter: {}, order: 'newest', limit: 10, after: null } as const;
  const { events } = await store.list(query);
  expect(events.map(({ id }) => id.length)).toEqual([69]);
});
