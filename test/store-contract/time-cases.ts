import { deepEqual, equal, ok } from 'node:assert/strict';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  DAY_MS,
  TestWorker,
  idsOf,
  incoming,
  pruneAll,
  select,
  states,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

const HOUR_MS = 3_600_000;

/** Replaces events of more than 7 days ago with tombstones, and deletes tombstones after 30 days. */
async function prune(store: InboxStore, limit = 100): Promise<number> {
  return store.prune({ bodiesMs: 7 * DAY_MS, tombstonesMs: 30 * DAY_MS, limit });
}

/** Effects of time: retention, workers whose clocks are wrong, and jumps of the wall clock. */
export const timeCases: readonly InboxContractCase[] = [
  {
    title:
      'IN-07 a copy of a pruned event is a duplicate until the retention ends, and a new event after that',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.complete(await worker.claimOne());
      equal(await prune(store), 0);
      await advance(8 * DAY_MS);
      equal(await prune(store), 1);
      equal(await prune(store), 0);
      const tombstone = await store.find('acme', event.id);
      equal(tombstone?.raw, null);
      deepEqual(tombstone?.deliveries, []);
      equal((await store.receive([event]))[0]?.outcome, 'duplicate');
      equal((await store.receive([{ ...event, raw: Buffer.from('x') }]))[0]?.outcome, 'conflict');
      await advance(23 * DAY_MS);
      equal(await prune(store), 1);
      equal(await store.find('acme', event.id), undefined);
      equal((await store.receive([event]))[0]?.outcome, 'stored');
      deepEqual(await states(store, event), { book: 'pending 0' });
    },
  },
  {
    title: 'IN-07 a second event of a pruned transaction is a duplicate until the retention ends',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const first = incoming({ orderingKey: 'tx', oncePerTransaction: true });
      const again = () => incoming({ orderingKey: 'tx', oncePerTransaction: true });
      await store.receive([first]);
      await store.complete(await worker.claimOne());
      await advance(8 * DAY_MS);
      equal(await prune(store), 1);
      const copy = again();
      const [receipt] = await store.receive([copy]);
      deepEqual([receipt!.outcome, receipt!.id], ['duplicate', first.id]);
      deepEqual(idsOf((await store.find('acme', first.id))!.repeats), [copy.id]);
      await advance(23 * DAY_MS);
      equal(await prune(store), 1);
      equal((await store.receive([again()]))[0]!.outcome, 'stored');
    },
  },
  {
    title:
      'IN-07 prune() keeps pending, running and dead events and changes at most `limit` events',
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
      await store.skip(select(skipped.id));
      await store.receive([pending, unhandled, running]);
      await store.complete(await worker.claimOne());
      await worker.claimOne('slow');
      await advance(40 * DAY_MS);
      const pruned = [];
      for (let n = 0; n < 4; n += 1) {
        pruned.push(
          await store.prune({ bodiesMs: 7 * DAY_MS, tombstonesMs: 60 * DAY_MS, limit: 1 }),
        );
      }
      deepEqual(pruned, [1, 1, 1, 0]);
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
    title: 'IN-07 prune() keeps the body of an event that was received less than bodiesMs ago',
    async run({ store, advance }) {
      await store.receive([incoming({ id: 'old', handlers: [] })]);
      await advance(2 * DAY_MS);
      await store.receive([incoming({ id: 'new', handlers: [] })]);
      await advance(6 * DAY_MS);
      equal(await prune(store), 1);
      ok((await store.find('acme', 'new'))?.raw);
      equal((await store.find('acme', 'old'))?.raw, null);
    },
  },
  {
    title: 'IN-07 prune() deletes the headers and deliveries of an event with its body',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ headers: { 'user-agent': 'a' } });
      await store.receive([event]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
      await store.complete(await worker.claimOne());
      await advance(2000);
      equal(await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 }), 1);
      const tombstone = (await store.find('acme', event.id))!;
      equal(tombstone.raw, null);
      deepEqual(tombstone.headers, {});
      deepEqual(tombstone.deliveries, []);
    },
  },
  {
    title: 'IN-26 receives and claims succeed while prune runs in batches',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const old = Array.from({ length: 300 }, () => incoming({ handlers: [] }));
      await store.receive(old);
      await advance(8 * DAY_MS);
      let changed = 0;
      const pruning = (async () => {
        for (let batch = 50; batch === 50; changed += batch) {
          batch = await prune(store, 50);
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
  {
    title:
      'SE-09 the tombstone of an event whose time is in the future is kept until the event is older than the retention',
    async run({ store, advance }) {
      const probe = incoming({ handlers: [] });
      await store.receive([probe]);
      const now = (await store.find('acme', probe.id))!.receivedAt.getTime();
      const ahead = incoming({ occurredAt: new Date(now + 20 * DAY_MS), handlers: [] });
      await store.receive([ahead]);
      await advance(31 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 30 * DAY_MS);
      equal(await store.find('acme', probe.id), undefined);
      equal((await store.find('acme', ahead.id))?.raw, null);
      equal((await store.receive([ahead]))[0]?.outcome, 'duplicate');
      await advance(20 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 30 * DAY_MS);
      equal(await store.find('acme', ahead.id), undefined);
    },
  },
  {
    title: 'IN-07 an event that was received while the clock was a year ahead does not stop prune',
    needs: 'hostClock',
    async run({ store, advance, jumpWallClock }) {
      await store.receive([incoming({ id: 'before', handlers: [] })]);
      jumpWallClock!(365 * DAY_MS);
      await store.receive([incoming({ id: 'ahead', handlers: [] })]);
      jumpWallClock!(-365 * DAY_MS);
      await store.receive([incoming({ id: 'after', handlers: [] })]);
      await advance(8 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 500 * DAY_MS);
      for (const id of ['before', 'after']) equal((await store.find('acme', id))?.raw, null);
      await advance(365 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 500 * DAY_MS);
      equal((await store.find('acme', 'ahead'))?.raw, null);
    },
  },
  {
    title:
      'IN-23 a worker whose clock is 10 minutes off stays alive and declares no other worker dead',
    needs: 'ownClock',
    async run({ store, another }) {
      const early = await TestWorker.start(await another({ clockOffsetMs: -600_000 }));
      const late = await TestWorker.start(await another({ clockOffsetMs: 600_000 }));
      const worker = await TestWorker.start(store);
      const all = [worker, early, late];
      for (const own of all) {
        const event = incoming();
        await own.store.receive([event]);
        await own.claimOne();
        for (const observer of all) {
          deepEqual(await observer.heartbeat(), { alive: true, suspects: false });
        }
        deepEqual(await states(store, event), { book: 'running 1' });
      }
    },
  },
  {
    title: 'IN-23 a worker whose clock is 10 minutes off sees the same due times and ages',
    needs: 'ownClock',
    async run({ store, another, advance }) {
      const early = await TestWorker.start(await another({ clockOffsetMs: -600_000 }));
      const late = await TestWorker.start(await another({ clockOffsetMs: 600_000 }));
      await late.store.receive([incoming()]);
      await early.store.fail(await early.claimOne(), { error: 'no', retryInMs: 60_000 });
      for (const own of [await TestWorker.start(store), early, late]) {
        equal((await own.claim()).length, 0);
        const dueInMs = (await own.store.nextDueInMs(['book']))!;
        ok(dueInMs > 30_000 && dueInMs <= 60_000, `due in ${dueInMs} ms`);
        ok((await own.store.stats()).oldestPendingMs! < 30_000);
        equal(await own.store.prune({ bodiesMs: 300_000, tombstonesMs: 300_000, limit: 10 }), 0);
      }
      await advance(61_000);
      const again = await late.claimOne();
      ok(again.ageMs >= 61_000 && again.ageMs < 90_000, `${again.ageMs} ms old`);
      equal((await early.store.complete(again)).settled, true);
    },
  },
  ...[-HOUR_MS, HOUR_MS].map((jumpMs): InboxContractCase => ({
    title: `IN-36 a jump of the wall clock by ${jumpMs / HOUR_MS} h delays no delivery and runs no delivery twice`,
    needs: 'hostClock',
    async run({ store, another, advance, jumpWallClock }) {
      const [worker, other] = await twoWorkers({ store, another });
      const [running, waiting, due] = [
        incoming({ handlers: ['book'] }),
        incoming({ handlers: ['mail'] }),
        incoming({ handlers: ['print'] }),
      ];
      await store.receive([running, waiting, due]);
      const lease = await worker.claimOne();
      await store.fail(await worker.claimOne('mail'), { error: 'no', retryInMs: 30_000 });
      await other.heartbeat();
      jumpWallClock!(jumpMs);
      // No worker is dead. The due delivery is still due, and the retry still waits.
      deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      deepEqual(await states(store, running), { book: 'running 1' });
      equal((await other.claimOne('print')).id, due.id);
      equal((await other.claim(['book', 'mail'])).length, 0);
      const fresh = incoming({ handlers: ['fresh'] });
      await store.receive([fresh]);
      await store.fail(await other.claimOne('fresh'), { error: 'no', retryInMs: 30_000 });
      await advance(28_000);
      equal((await other.claim(['book', 'mail', 'fresh'])).length, 0);
      await advance(3000);
      equal((await other.claim(['mail', 'fresh'])).length, 2);
      equal((await other.claim(['book', 'mail', 'print', 'fresh'])).length, 0);
      equal((await store.complete(lease)).settled, true);
    },
  })),
];
