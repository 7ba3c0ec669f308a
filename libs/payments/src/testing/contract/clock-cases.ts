import { deepEqual, equal, ok } from 'node:assert/strict';
import { incoming, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const HOUR = 3_600_000;

export const clockCases: readonly InboxContractCase[] = [
  {
    title: 'IN-23 frees nothing of workers whose clocks are 10 minutes off, either way',
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
    title: 'IN-23 keeps waits and ages right between workers whose clocks are 10 minutes off',
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
  ...[-HOUR, HOUR].map((jumpMs): InboxContractCase => ({
    title: `IN-36 delays nothing and runs nothing twice if the wall clock jumps ${jumpMs / HOUR} h`,
    needs: 'hostClock',
    async run({ store, another, advance, jumpWallClock }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
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
      // Nobody is dead, what was due is due, and what waits goes on waiting.
      deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      deepEqual(await states(store, running), { book: 'running 1' });
      equal((await other.claimOne('print')).id, due.id);
      equal((await other.claim(['book', 'mail'])).length, 0);
      const fresh = incoming({ handlers: ['fresh'] });
      await store.receive([fresh]);
      equal((await other.claimOne('fresh')).id, fresh.id);
      await advance(28_000);
      equal((await other.claim(['book', 'mail'])).length, 0);
      await advance(3000);
      equal((await other.claimOne('mail')).id, waiting.id);
      equal((await other.claim(['book', 'mail', 'print', 'fresh'])).length, 0);
      equal((await store.complete(lease)).settled, true);
    },
  })),
];
