import { expect, it } from '@jest/globals';
import { receiver, throwNo } from '../../../../test/support/inbox/receiver-harness.js';
import { HandlerRegistry } from '../events/handler-registry.js';
import type { ClaimedDelivery } from '../inbox/store/inbox-store.js';
import { POLL_HANDLER } from '../inbox/store/expectation-store.js';
import { HandlerCatalogCache } from '../inbox/store/handler-catalog-cache.js';
import { InternalHandlers } from '../inbox/work/internal-handlers.js';
import { FakePaymentsApi } from '../testing/fake-payments-api.js';
import { PollHandler } from './poll-handler.js';
import { byStatus, resolveReconcileOptions } from './reconcile-options.js';

/** A poll handler on a memory store with one expectation, whose delivery is claimed. */
async function claimed(transactionId = 't-1') {
  const harness = receiver();
  const { store, runtime, made } = harness;
  const api = new FakePaymentsApi();
  api.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
  const internal = new InternalHandlers();
  const interpret = byStatus({ complete: 'transaction.completed' });
  new PollHandler(
    resolveReconcileOptions({ interpret }),
    store,
    runtime,
    api,
    made,
    new HandlerCatalogCache(store, new HandlerRegistry()),
    internal,
  ).register();
  const handler = internal.get(POLL_HANDLER)!;
  const { patterns } = handler;
  await store.register({ id: 'w', leaseMs: 60_000, handlers: [{ name: POLL_HANDLER, patterns }] });
  const times = { dueBy: null, schedule: [1000], firstPollInMs: 0 };
  await store.expectations.expect({ company: 'c', reference: 'r', transactionId, ...times });
  const wanted = [{ handler: POLL_HANDLER, limit: 1 }];
  const [delivery] = (await store.claim({ worker: 'w', wanted })) as [ClaimedDelivery];
  const poll = async (signal = new AbortController().signal) => {
    const { write } = await handler.run(delivery, signal);
    return write(store, delivery);
  };
  const find = async () => (await store.expectations.find('c', 'r'))!;
  return { ...harness, api, poll, find };
}

it('EX-01 a poll that was claimed before its expectation was cancelled makes no call', async () => {
  const { store, poll, find, api } = await claimed();
  await store.expectations.cancel('c', 'r');
  expect(await poll()).toMatchObject({ settled: true });
  expect(api.calls).toEqual([]);
  expect(await find()).toMatchObject({ state: 'cancelled', polls: 0, nextPollAt: null });
});

it('EX-04 a poll whose event cannot be stored rejects, so that the worker repeats it', async () => {
  const { store, poll, find } = await claimed();
  store.receive = throwNo;
  await expect(poll()).rejects.toThrow('no');
  expect(await find()).toMatchObject({ state: 'waiting', polls: 0 });
});

it('EX-06 an aborted poll rejects and records nothing', async () => {
  const { poll, find, api } = await claimed();
  const abort = new AbortController();
  api.respond('GET', '/v1/transactions/{id}', () => {
    abort.abort(new Error('the application closes'));
    throw new Error('aborted');
  });
  await expect(poll(abort.signal)).rejects.toThrow('the application closes');
  expect(await find()).toMatchObject({ state: 'waiting', polls: 0, lastPoll: null });
});

it('EX-06 the signal of the call to the service aborts with the signal of the poll', async () => {
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

it('EX-07 an overdue event is stored for a handler that another process has registered meanwhile', async () => {
  const { store, runtime, poll, find, api } = await claimed();
  const handlers = [{ name: 'remind', patterns: ['@payments/overdue'] }];
  await store.register({ id: 'w 2', leaseMs: 60_000, handlers });
  api.respond('GET', '/v1/transactions/{id}', { status: 'processing' });
  runtime.advance(2000);
  await poll();
  expect((await find()).state).toBe('overdue');
  expect((await store.find('c', 'overdue:r'))?.deliveries).toMatchObject([{ handler: 'remind' }]);
});

it('EX-04 the event of a transaction with a long id has an id of at most 255 characters', async () => {
  const { store, poll } = await claimed('x'.repeat(255));
  await poll();
  const query = { filter: {}, order: 'newest', limit: 10, after: null } as const;
  const { events } = await store.list(query);
  expect(events.map(({ id }) => id.length)).toEqual([69]);
});
