import { deepEqual, equal, ok } from 'node:assert/strict';
import { incoming, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const DAY = 86_400_000;

export const pruneCases: readonly InboxContractCase[] = [
  {
    title: 'IN-07 knows a duplicate after pruning by its tombstone, until the retention ends',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      const prune = () => store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 100 });
      await store.receive([event]);
      await store.complete(await worker.claimOne());
      equal(await prune(), 0);
      await advance(8 * DAY);
      equal(await prune(), 1);
      equal(await prune(), 0);
      const tombstone = await store.find('acme', event.id);
      equal(tombstone?.raw, null);
      deepEqual(tombstone?.deliveries, []);
      equal((await store.receive([event]))[0]?.outcome, 'duplicate');
      equal((await store.receive([{ ...event, raw: Buffer.from('x') }]))[0]?.outcome, 'conflict');
      await advance(23 * DAY);
      equal(await prune(), 1);
      equal(await store.find('acme', event.id), undefined);
      equal((await store.receive([event]))[0]?.outcome, 'stored');
      deepEqual(await states(store, event), { book: 'pending 0' });
    },
  },
  {
    title:
      'IN-07 prunes no event that is pending, running or dead, and at most the limit at a time',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const [pending, dead, done, skipped, unhandled, running] = [
        incoming({ handlers: ['later'] }),
        incoming(),
        incoming(),
        incoming(),
        incoming({ handlers: [] }),
        incoming({ handlers: ['book', 'slow'] }),
      ];
      await store.receive([dead]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([done]);
      await store.complete(await worker.claimOne());
      await store.receive([skipped]);
      await store.skip([{ company: 'acme', id: skipped.id, handlers: ['book'] }]);
      await store.receive([pending, unhandled, running]);
      await store.complete(await worker.claimOne());
      await worker.claimOne('slow');
      await advance(40 * DAY);
      const prune = () => store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 60 * DAY, limit: 1 });
      deepEqual([await prune(), await prune(), await prune(), await prune()], [1, 1, 1, 0]);
      deepEqual(await states(store, pending), { later: 'pending 0' });
      deepEqual(await states(store, dead), { book: 'dead 1' });
      deepEqual(await states(store, running), { book: 'done 1', slow: 'running 1' });
      for (const { id } of [done, skipped, unhandled]) {
        equal((await store.find('acme', id))?.raw, null);
      }
      ok((await store.find('acme', dead.id))?.raw);
    },
  },
  {
    title: 'IN-07 keeps what was received less than bodiesMs ago',
    async run({ store, advance }) {
      await store.receive([incoming({ id: 'old', handlers: [] })]);
      await advance(2 * DAY);
      await store.receive([incoming({ id: 'new', handlers: [] })]);
      await advance(6 * DAY);
      equal(await store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 100 }), 1);
      ok((await store.find('acme', 'new'))?.raw);
      equal((await store.find('acme', 'old'))?.raw, null);
    },
  },
  {
    title: 'IN-26 prunes in batches next to receives and claims, none of which is rejected',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const old = Array.from({ length: 300 }, () => incoming({ handlers: [] }));
      await store.receive(old);
      await advance(8 * DAY);
      let changed = 0;
      const pruning = (async () => {
        for (let batch = 50; batch === 50; changed += batch) {
          batch = await store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 50 });
          ok(batch <= 50);
        }
      })();
      let claimed = 0;
      const receiving = (async () => {
        for (let received = 0; received < 20; received += 1) {
          equal((await store.receive([incoming()]))[0]?.outcome, 'stored');
          claimed += (await worker.claim()).length;
        }
      })();
      await Promise.all([pruning, receiving]);
      claimed += (await worker.claim()).length;
      equal(changed, 300);
      equal(claimed, 20);
      equal((await store.receive([old[0]!]))[0]?.outcome, 'duplicate');
    },
  },
];
