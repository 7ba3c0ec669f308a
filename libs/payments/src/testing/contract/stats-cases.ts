import { deepEqual, equal, ok } from 'node:assert/strict';
import { COUNT_CAP } from '../../inbox/store/stored-event.js';
import { idsOf, incoming, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const NONE = { count: 0, more: false };

export const statsCases: readonly InboxContractCase[] = [
  {
    title: 'IN-28 counts unfinished deliveries by handler and state, and the age of the oldest one',
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
      // One of the key runs, the other one is held, and is pending all the same.
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
      // What runs counts as well; what is dead, done or skipped does not.
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
    title: 'IN-28 counts up to 10,000, and reports if there are more',
    async run({ store }) {
      const receive = async (count: number) => {
        for (let left = count; left > 0; left -= 500) {
          await store.receive(
            Array.from({ length: Math.min(500, left) }, (_, n) =>
              incoming({ handlers: n % 2 === 0 ? ['book'] : [] }),
            ),
          );
        }
      };
      await receive(2 * COUNT_CAP);
      const exact = await store.stats();
      const book = { handler: 'book', state: 'pending' };
      deepEqual(exact.deliveries, [{ ...book, count: COUNT_CAP, more: false }]);
      deepEqual(exact.unhandled, { count: COUNT_CAP, more: false });
      await receive(2);
      const capped = await store.stats();
      deepEqual(capped.deliveries, [{ ...book, count: COUNT_CAP, more: true }]);
      deepEqual(capped.unhandled, { count: COUNT_CAP, more: true });
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
      const unhandled = async () => {
        const filter = { state: 'unhandled' } as const;
        const page = await store.list({ filter, order: 'oldest', limit: 10, after: null });
        return [(await store.stats()).unhandled.count, idsOf(page.events).toSorted().join()];
      };
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
];
