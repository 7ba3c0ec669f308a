import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import type { EventFilter, InboxStore } from '../../inbox/inbox-store.js';
import { claim, claimOne, incoming } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

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

export const operationCases: readonly InboxContractCase[] = [
  {
    title: '27: pauses and resumes a handler, in every worker',
    async run({ store, another }) {
      const other = await another();
      await store.receive([incoming({ handlers: ['book', 'mail'] })]);
      await store.pause('book', true);
      deepEqual((await other.stats()).paused, ['book']);
      deepEqual(
        (await claim(other, ['book', 'mail'])).map(({ handler }) => handler),
        ['mail'],
      );
      equal((await claim(store)).length, 0);
      await other.pause('book', false);
      equal((await claim(store)).length, 1);
      deepEqual((await store.stats()).paused, []);
    },
  },
  {
    title: '27: pauses and resumes the whole inbox, receives going on',
    async run({ store, another }) {
      const other = await another();
      await store.pause('*', true);
      equal((await store.receive([incoming()]))[0]?.outcome, 'stored');
      equal((await claim(store)).length, 0);
      equal((await claim(other)).length, 0);
      await store.pause('*', false);
      equal((await claim(other)).length, 1);
    },
  },
  {
    title:
      '28: counts deliveries by handler and state, unhandled events, and the oldest pending age',
    async run({ store, advance }) {
      const empty = await store.stats();
      deepEqual(empty, {
        deliveries: [],
        unhandled: 0,
        stale: 0,
        oldestPendingMs: null,
        paused: [],
      });
      await store.receive([incoming({ handlers: ['mail'] })]);
      await advance(60_000);
      await store.receive([incoming(), incoming(), incoming(), incoming({ handlers: [] })]);
      const [a, b] = await claim(store, ['book'], 2);
      await store.complete(a!);
      await store.fail(b!, { error: 'no', retryInMs: null });
      const stats = await store.stats();
      const byName = stats.deliveries.map(
        ({ handler, state, count }) => `${handler} ${state} ${count}`,
      );
      deepEqual(byName.toSorted(), [
        'book dead 1',
        'book done 1',
        'book pending 1',
        'mail pending 1',
      ]);
      equal(stats.unhandled, 1);
      ok(stats.oldestPendingMs! >= 60_000 && stats.oldestPendingMs! < 90_000);
    },
  },
  {
    title:
      'WH-29 counts and lists unhandled events until they are handled or pruned, tests excluded',
    async run({ store, advance }) {
      await store.receive([
        incoming({ id: 'a', handlers: [] }),
        incoming({ id: 'b', handlers: [] }),
        incoming({ id: 'test', handlers: [], eventType: 'webhook.test' }),
        incoming({ id: 'handled' }),
      ]);
      const unhandled = async () => [
        (await store.stats()).unhandled,
        (await ids(store, { state: 'unhandled' })).toSorted().join(),
      ];
      deepEqual(await unhandled(), [2, 'a,b']);
      const redriven = { company: 'acme', id: 'a', handlers: ['book'] };
      await store.redrive([redriven], { force: false, dueInMs: [0] });
      deepEqual(await unhandled(), [1, 'b']);
      await advance(1000);
      await store.prune({ bodiesMs: 500, tombstonesMs: 1e9, limit: 10 });
      deepEqual(await unhandled(), [0, '']);
      await advance(1000);
      await store.prune({ bodiesMs: 500, tombstonesMs: 500, limit: 10 });
      deepEqual(await unhandled(), [0, '']);
    },
  },
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
      await store.receive([a]);
      await store.fail(await claimOne(store), { error: 'no', retryInMs: null });
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
    title: 'wakes those who listen when something is received elsewhere',
    needs: 'shared',
    async run({ store, another }) {
      const other = await another();
      let stop = () => {};
      const woken = new Promise<void>((resolve) => {
        stop = other.onWake(resolve);
      });
      await store.receive([incoming()]);
      await woken;
      stop();
    },
  },
  {
    title: 'knows when the next delivery is due',
    async run({ store }) {
      equal(await store.nextDueInMs(['book']), null);
      await store.receive([incoming()]);
      ok((await store.nextDueInMs(['book']))! <= 0);
      equal(await store.nextDueInMs(['mail']), null);
      await claimOne(store);
      ok((await store.nextDueInMs(['book']))! > 0);
    },
  },
  {
    title: 'rejects what is asked after it was closed',
    needs: 'shared',
    async run({ another }) {
      const closed = await another();
      await closed.close();
      await rejects(closed.receive([incoming()]));
      await rejects(closed.claim({ handlers: ['book'], limit: 1, leaseMs: 1000 }));
    },
  },
];
