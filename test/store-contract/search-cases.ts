import { deepEqual, equal } from 'node:assert/strict';
import type { EventFilter, InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming, TestWorker } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** The ids of the events that a search finds, sorted. */
async function found(store: InboxStore, search: string, filter: EventFilter = {}) {
  const page = await store.list({
    filter: { ...filter, search },
    order: 'newest',
    limit: 100,
    after: null,
  });
  return page.events.map(({ id }) => id).toSorted();
}

/** Stores events whose only delivery is dead, with this error. */
async function fail(store: InboxStore, error: string, ids: readonly string[]): Promise<void> {
  const worker = await TestWorker.start(store);
  for (const id of ids) {
    await store.receive([incoming({ id })]);
    await store.fail(await worker.claimOne(), { error, retryInMs: null });
  }
}

/** Searches, summaries and failures. */
export const searchCases: readonly InboxContractCase[] = [
  {
    title: 'an event keeps its summary until it becomes a tombstone',
    async run({ store, advance }) {
      const summary = { reference: 'order \u{1F6D2} 7', amount: '350.00', currency: 'KES' };
      const event = incoming({ summary, handlers: [] });
      await store.receive([event, incoming({ id: 'none' })]);
      const [listed] = (
        await store.list({ filter: { ids: [event.id] }, order: 'newest', limit: 1, after: null })
      ).events;
      for (const one of [listed!, (await store.find('acme', event.id))!]) {
        const { reference, amount, currency } = one;
        deepEqual({ reference, amount, currency }, summary);
      }
      equal((await store.find('acme', 'none'))!.reference, null);
      await advance(1000);
      await store.prune({ bodiesMs: 0, tombstonesMs: 1e12, limit: 100 });
      const { reference, amount, currency } = (await store.find('acme', event.id))!;
      deepEqual({ reference, amount, currency }, { reference: null, amount: null, currency: null });
      deepEqual(await found(store, 'order'), []);
    },
  },
  {
    title:
      'search finds events by the start of their id or reference, and by their whole transaction id',
    async run({ store }) {
      const summary = { reference: 'order-17', amount: null, currency: null };
      await store.receive([
        incoming({ id: 'alpha', orderingKey: 'tx_1%' }),
        incoming({ id: 'delta', orderingKey: 'tx_1%', oncePerTransaction: true }),
        incoming({ id: 'beta', summary, company: 'umbrella' }),
        incoming({ id: 'order-1' }),
        incoming({ id: 'gamma', orderingKey: 'order-1' }),
      ]);
      deepEqual(await found(store, 'alph'), ['alpha']);
      deepEqual(await found(store, 'lpha'), []);
      deepEqual(await found(store, 'tx_1%'), ['alpha', 'delta']);
      deepEqual(await found(store, 'tx_1'), []);
      deepEqual(await found(store, 'order-1'), ['beta', 'gamma', 'order-1']);
      deepEqual(await found(store, 'order-1', { company: 'umbrella' }), ['beta']);
      deepEqual(await found(store, 'order-'), ['beta', 'order-1']);
      deepEqual(await found(store, 'order-17'), ['beta']);
      deepEqual(await found(store, 'transaction.completed'), []);
    },
  },
  {
    title: 'search accepts any characters, and finds ids that contain them',
    async run({ store }) {
      const ids = ["'; drop table", '%_\\', '\u{1F4B6} euro', '\uD83D lone', '"quoted"', 'a*?'];
      await store.receive(ids.map((id) => incoming({ id })));
      for (const id of ids) deepEqual(await found(store, id), [id]);
      for (const text of ['\0', '\uDC00', 'x'.repeat(10_000), '\u{10FFFF}']) {
        deepEqual(await found(store, text), []);
      }
    },
  },
  {
    title: 'a search with more results than a page returns each event once',
    async run({ store }) {
      const all = Array.from({ length: 25 }, (_, n) => `event-${String(n).padStart(2, '0')}`);
      const summary = { reference: 'event-x', amount: null, currency: null };
      await store.receive(all.map((id) => incoming({ id, summary, orderingKey: 'event-' })));
      const pages: string[] = [];
      let after: string | null = null;
      do {
        const query = { filter: { search: 'event-' }, order: 'oldest', limit: 10, after } as const;
        const page = await store.list(query);
        pages.push(...page.events.map(({ id }) => id));
        after = page.next;
      } while (after !== null);
      deepEqual(pages.toSorted(), all);
    },
  },
  {
    title: 'failures counts failed deliveries by handler, error and state',
    async run({ store, advance }) {
      deepEqual(await store.failures(), { counts: [], more: false });
      await fail(store, 'no ledger', ['a', 'b']);
      const { startedAt } = (await store.find('acme', 'a'))!.deliveries[0]!.history[0]!;
      await advance(5000);
      await fail(store, 'no ledger', ['c']);
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ id: 'd' })]);
      await store.fail(await worker.claimOne(), { error: 'no ledger', retryInMs: 60_000 });
      const { counts, more } = await store.failures();
      equal(more, false);
      // A store may divide a count.
      const sum = (state: string) =>
        counts.filter((one) => one.state === state).reduce((total, { count }) => total + count, 0);
      deepEqual([sum('dead'), sum('retrying')], [3, 1]);
      const dead = counts.find(({ state }) => state === 'dead')!;
      deepEqual([dead.handler, dead.error, dead.company], ['book', 'no ledger', 'acme']);
      equal(dead.eventId, 'c');
      equal(dead.oldestAt >= startedAt, true);
      equal(dead.newestAt.getTime() - dead.oldestAt.getTime() >= 5000, true);
      await store.skip([{ company: 'acme', id: 'd', handlers: ['book'] }]);
      equal(
        (await store.failures()).counts.some(({ state }) => state === 'retrying'),
        false,
      );
    },
  },
];
