import { deepEqual, equal, ok } from 'node:assert/strict';
import { COUNT_CAP } from '../../libs/payments/dist/inbox/store/stored-event.js';
import type {
  EventFilter,
  InboxStore,
  EventPage,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { REDRIVE_NOW, TestWorker, idsOf, incoming, listAll, select } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

const NONE = { count: 0, more: false };

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
    const page: EventPage = await store.list({ filter, order, limit, after });
    ok(page.events.length <= limit);
    ok(page.events.every(({ raw }) => raw === null));
    found.push(...idsOf(page.events));
    after = page.next;
  } while (after !== null);
  return found;
}

/** The data that operators read: lists of events, and statistics. */
export const queryCases: readonly InboxContractCase[] = [
  {
    title: 'list() returns events page by page, with the oldest or the newest event first',
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
    title: 'list() applies each filter, and several filters together',
    async run({ store, advance }) {
      const a = incoming({ id: 'alpha', orderingKey: 'tx_1%' });
      const b = incoming({ id: 'beta', eventType: 'payout.settled', company: 'umbrella' });
      const c = incoming({ id: 'gamma', handlers: ['mail'] });
      const d = incoming({ id: 'delta', handlers: [], source: 'poll' });
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
      deepEqual(await ids(store, { source: 'poll' }), ['delta']);
      deepEqual(await ids(store, { source: 'webhook', from: half, company: 'acme' }), ['gamma']);
      deepEqual(await ids(store, { to: half }), ['alpha']);
      deepEqual((await ids(store, { from: half })).length, 3);
      deepEqual(await ids(store, { handler: 'mail' }), ['gamma']);
      deepEqual(await ids(store, { state: 'dead' }), ['alpha']);
      deepEqual(await ids(store, { state: 'unhandled' }), ['delta']);
      deepEqual(await ids(store, { state: 'pending', handler: 'mail' }), ['gamma']);
      for (const state of ['unhandled', 'stale'] as const) {
        deepEqual(await ids(store, { state, handler: 'mail' }), []);
      }
      deepEqual(await ids(store, { state: 'dead', handler: 'mail' }), []);
      deepEqual(await ids(store, { search: 'bet', company: 'umbrella' }), ['beta']);
      deepEqual(await ids(store, { search: 'bet', company: 'acme' }), []);
    },
  },
  {
    title: 'list() finds no tombstone by a handler or by the state of a delivery',
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
    title: 'list() returns events without bodies, headers and histories',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ headers: { 'user-agent': 'a' } })]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
      const [event] = await listAll(store);
      deepEqual(event!.headers, {});
      equal(event!.raw, null);
      deepEqual(
        event!.deliveries.map(({ attempts, lastError, history }) => [attempts, lastError, history]),
        [[1, 'no', []]],
      );
    },
  },
  {
    title: 'pages of a list neither repeat nor miss an event while new events are received',
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
  {
    title: 'list() returns events in the order of receipt, even after the wall clock was set back',
    needs: 'hostClock',
    async run({ store, jumpWallClock }) {
      await store.receive([incoming({ id: 'first' })]);
      jumpWallClock!(-3_600_000);
      await store.receive([incoming({ id: 'second' })]);
      await store.receive([incoming({ id: 'third' })]);
      for (const filter of [{}, { state: 'pending' }, { company: 'acme' }] as const) {
        deepEqual(await ids(store, filter, 'oldest', 1), ['first', 'second', 'third']);
        deepEqual(await ids(store, filter, 'newest', 2), ['third', 'second', 'first']);
      }
    },
  },
  {
    title:
      'list() finds every event of a time range, even if the wall clock is sometimes set back by 50 s',
    needs: 'hostClock',
    async run({ store, advance, jumpWallClock }) {
      for (let index = 0; index < 40; index += 1) {
        jumpWallClock!(index % 5 === 2 ? -50_000 : index % 5 === 4 ? 50_000 : 0);
        await store.receive([incoming({ handlers: [] })]);
        await advance(10_000);
      }
      const all = await listAll(store);
      for (const { receivedAt: from } of all) {
        const to = new Date(from.getTime() + 90_000);
        const within = all.filter(({ receivedAt }) => receivedAt >= from && receivedAt < to);
        deepEqual(await ids(store, { from, to }), idsOf(within));
      }
    },
  },
  {
    title:
      'IN-28 stats() counts unfinished deliveries per handler and state, and returns the age of the oldest event',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store);
      deepEqual(await store.stats(), {
        deliveries: [],
        unhandled: NONE,
        stale: NONE,
        oldestPendingMs: null,
        paused: [],
      });
      const first = incoming({ handlers: ['mail'] });
      await store.receive([first]);
      await advance(60_000);
      const events = Array.from({ length: 5 }, (_, n) =>
        incoming({ orderingKey: n < 2 ? 'k' : null }),
      );
      await store.receive([...events, incoming({ handlers: [] })]);
      const leases = await worker.claim(['book'], 4);
      equal(leases.length, 4);
      // One delivery of the key runs. The other one waits: its state is still pending.
      const free = leases.filter(({ id }) => !idsOf(events.slice(0, 2)).includes(id));
      await store.complete(free[0]!);
      await store.fail(free[1]!, { error: 'no', retryInMs: null });
      await store.fail(free[2]!, { error: 'no', retryInMs: 600_000 });
      const stats = await (await another()).stats();
      const byName = stats.deliveries.map(
        ({ handler, state, count, more }) => `${handler} ${state} ${count} ${more}`,
      );
      deepEqual(byName.toSorted(), [
        'book dead 1 false',
        'book pending 2 false',
        'book running 1 false',
        'mail pending 1 false',
      ]);
      deepEqual(stats.unhandled, { count: 1, more: false });
      ok(stats.oldestPendingMs! >= 60_000 && stats.oldestPendingMs! < 90_000);
      const running = await worker.claimOne('mail');
      // A running delivery counts, too. Dead, done and skipped deliveries do not count.
      ok((await store.stats()).oldestPendingMs! >= 60_000);
      await store.fail(running, { error: 'no', retryInMs: null });
      ok((await store.stats()).oldestPendingMs! < 30_000);
      const all = events.map(({ id }) => ({ company: 'acme', id, handlers: ['book'] }));
      const last = leases.find((lease) => !free.includes(lease))!;
      await store.complete(last);
      await store.skip(all);
      equal((await store.stats()).oldestPendingMs, null);
    },
  },
  {
    title: 'IN-28 each count of stats() is at most 10,000, with a flag if there are more rows',
    async run({ store }) {
      await store.receive([incoming({ id: 'rare', company: 'umbrella', handlers: ['book'] })]);
      const receive = async (count: number) => {
        for (let left = count; left > 0; left -= 500) {
          await store.receive(
            Array.from({ length: Math.min(500, left) }, (_, n) =>
              incoming({ handlers: n % 2 === 0 ? ['book'] : [] }),
            ),
          );
        }
      };
      await receive(2 * COUNT_CAP - 2);
      await store.receive([incoming({ handlers: [] })]);
      const exact = await store.stats();
      const book = { handler: 'book', state: 'pending' };
      deepEqual(exact.deliveries, [{ ...book, count: COUNT_CAP, more: false }]);
      deepEqual(exact.unhandled, { count: COUNT_CAP, more: false });
      await receive(2);
      const capped = await store.stats();
      deepEqual(capped.deliveries, [{ ...book, count: COUNT_CAP, more: true }]);
      deepEqual(capped.unhandled, { count: COUNT_CAP, more: true });
      // A call may end after 20,000 events, without an event and with `next`.
      deepEqual(await ids(store, { company: 'umbrella' }, 'newest'), ['rare']);
      deepEqual(await ids(store, { company: 'nobody', handler: 'book' }, 'newest'), []);
    },
  },
  {
    title: 'WH-29 unhandled events are counted and listed until they are redriven or pruned',
    async run({ store, advance }) {
      await store.receive([
        incoming({ id: 'a', handlers: [] }),
        incoming({ id: 'b', handlers: [] }),
        incoming({ id: 'test', handlers: [], eventType: 'webhook.test' }),
        incoming({ id: 'handled' }),
      ]);
      const unhandled = async () => {
        const ids = idsOf(await listAll(store, { state: 'unhandled' })).toSorted();
        return [(await store.stats()).unhandled.count, ids.join()];
      };
      deepEqual(await unhandled(), [2, 'a,b']);
      await store.redrive(select('a'), REDRIVE_NOW);
      deepEqual(await unhandled(), [1, 'b']);
      await advance(1000);
      await store.prune({ bodiesMs: 500, tombstonesMs: 1e9, limit: 10 });
      deepEqual(await unhandled(), [0, '']);
      await advance(1000);
      await store.prune({ bodiesMs: 500, tombstonesMs: 500, limit: 10 });
      deepEqual(await unhandled(), [0, '']);
    },
  },
];
