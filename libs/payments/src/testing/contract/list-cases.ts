import { deepEqual, equal, ok } from 'node:assert/strict';
import type { EventFilter, InboxStore } from '../../inbox/store/inbox-store.js';
import { incoming, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

/** The ids of all pages. */
async function ids(
  store: InboxStore,
  filter: EventFilter = {},
  order: 'newest' | 'oldest' = 'oldest',
  limit = 1000,
): Promise<string[]> {
  const found: string[] = [];
  let after: string | null = null;
  do {
    const page = await store.list({ filter, order, limit, after });
    ok(page.events.length <= limit);
    ok(page.events.every(({ raw }) => raw === null));
    found.push(...page.events.map(({ id }) => id));
    after = page.next;
  } while (after !== null);
  return found;
}

export const listCases: readonly InboxContractCase[] = [
  {
    title: 'lists events in either order, page by page',
    async run({ store, advance }) {
      const expected: string[] = [];
      for (let index = 0; index < 7; index += 1) {
        const event = incoming();
        await store.receive([event]);
        await advance(1000);
        expected.push(event.id);
      }
      deepEqual(await ids(store, {}, 'oldest', 3), expected);
      deepEqual(await ids(store, {}, 'newest', 2), expected.toReversed());
      deepEqual(await ids(store, {}, 'newest'), expected.toReversed());
    },
  },
  {
    title: 'lists by every filter, and by several at once',
    async run({ store, advance }) {
      const a = incoming({ id: 'alpha', orderingKey: 'tx_1%' });
      const b = incoming({ id: 'beta', eventType: 'payout.settled', company: 'umbrella' });
      const c = incoming({ id: 'gamma', handlers: ['mail'] });
      const d = incoming({ id: 'delta', handlers: [] });
      const worker = await TestWorker.start(store);
      await store.receive([a]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await advance(5000);
      const half = new Date((await store.find('acme', 'alpha'))!.receivedAt.getTime() + 2500);
      await store.receive([b, c, d]);
      deepEqual((await ids(store)).toSorted(), ['alpha', 'beta', 'delta', 'gamma']);
      deepEqual(await ids(store, { company: 'umbrella' }), ['beta']);
      deepEqual(await ids(store, { ids: ['gamma', 'none'] }), ['gamma']);
      deepEqual(await ids(store, { ids: [] }), []);
      deepEqual(await ids(store, { eventType: 'payout.settled' }), ['beta']);
      deepEqual(await ids(store, { to: half }), ['alpha']);
      deepEqual((await ids(store, { from: half })).length, 3);
      deepEqual(await ids(store, { handler: 'mail' }), ['gamma']);
      deepEqual(await ids(store, { state: 'dead' }), ['alpha']);
      deepEqual(await ids(store, { state: 'unhandled' }), ['delta']);
      deepEqual(await ids(store, { state: 'pending', handler: 'mail' }), ['gamma']);
      deepEqual(await ids(store, { state: 'dead', handler: 'mail' }), []);
      deepEqual(await ids(store, { search: 'lph' }), ['alpha']);
      // What a pattern language would read as a wildcard is an ordinary character.
      deepEqual(await ids(store, { search: 'x_1%' }), ['alpha']);
      deepEqual(await ids(store, { search: '%' }), ['alpha']);
      deepEqual(await ids(store, { search: 'settled', company: 'umbrella' }), ['beta']);
      deepEqual(await ids(store, { search: "'; drop table" }), []);
    },
  },
  {
    title: 'finds no tombstone by a handler or by the state of a delivery',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ id: 'old' })]);
      await store.complete(await worker.claimOne());
      await advance(2000);
      deepEqual(await ids(store, { handler: 'book', state: 'done' }), ['old']);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 });
      deepEqual(await ids(store), ['old']);
      deepEqual(await ids(store, { handler: 'book' }), []);
      deepEqual(await ids(store, { state: 'done' }), []);
    },
  },
  {
    title: 'lists events without their bodies, headers and histories',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ headers: { 'user-agent': 'a' } })]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
      const query = { filter: {}, order: 'oldest', limit: 10, after: null } as const;
      const [event] = (await store.list(query)).events;
      deepEqual(event!.headers, {});
      equal(event!.raw, null);
      deepEqual(
        event!.deliveries.map(({ attempts, lastError, history }) => [attempts, lastError, history]),
        [[1, 'no', []]],
      );
    },
  },
  {
    title: 'lists what is received while it is paged through neither twice nor instead of the rest',
    async run({ store }) {
      const before = Array.from({ length: 6 }, () => incoming());
      await store.receive(before);
      for (const order of ['oldest', 'newest'] as const) {
        const query = { filter: {}, order, limit: 3 };
        const first = await store.list({ ...query, after: null });
        await store.receive([incoming()]);
        const second = await store.list({ ...query, after: first.next });
        const seen = [...first.events, ...second.events].map(({ id }) => id);
        equal(new Set(seen).size, 6);
      }
    },
  },
];
