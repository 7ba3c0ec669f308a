import { deepEqual, equal, ok } from 'node:assert/strict';
import { bucketOf, noCounts } from '../../inbox/activity.minutes.js';
import type { ActivityCounts, ActivityMinute } from '../../inbox/activity.minutes.js';
import type { InboxStore } from '../../inbox/inbox-store.js';
import { claimOne, incoming } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

const MINUTE_MS = 60_000;

/** Counts of deliveries that took so many milliseconds each. */
function handledIn(...tookMs: readonly number[]): ActivityCounts {
  const counts = noCounts();
  for (const ms of tookMs) counts.handledWithin[bucketOf(ms)]! += 1;
  return { ...counts, handled: tookMs.length };
}

/** All of the minutes together: a test may begin in one and end in the next. */
function sum(minutes: readonly ActivityMinute[]): Record<string, number> {
  const of = (name: 'received' | 'handled' | 'failed' | 'dead') =>
    minutes.reduce((total, minute) => total + minute[name], 0);
  return {
    received: of('received'),
    handled: of('handled'),
    failed: of('failed'),
    dead: of('dead'),
  };
}

/** The current minute with what `work` records in it, and nothing else. */
async function withinOneMinute(
  store: InboxStore,
  advance: (ms: number) => Promise<void>,
  work: () => Promise<unknown>,
): Promise<ActivityMinute> {
  for (let tries = 0; tries < 5; tries += 1) {
    const [before] = await store.activity(1);
    await work();
    const [after] = await store.activity(1);
    if (before!.at.getTime() === after!.at.getTime()) return after!;
    await advance(2 * MINUTE_MS);
  }
  throw new Error('recording took longer than a minute, again and again');
}

export const activityCases: readonly InboxContractCase[] = [
  {
    title: 'adds up what several workers record at the same time',
    async run({ store, another }) {
      const stores = [store, await another(), await another()];
      const counts = { ...handledIn(3, 30), received: 3, failed: 2, dead: 1 };
      await Promise.all(
        Array.from({ length: 30 }, (_, index) => stores[index % 3]!.record(counts)),
      );
      const all = { received: 90, handled: 60, failed: 60, dead: 30 };
      for (const own of stores) deepEqual(sum(await own.activity(3)), all);
    },
  },
  {
    title: 'shows each of the last minutes once, the current one last, zeros where nothing was',
    async run({ store, advance }) {
      for (const minutes of [1, 5, 1440]) {
        const empty = await store.activity(minutes);
        equal(empty.length, minutes);
        deepEqual(sum(empty), { received: 0, handled: 0, failed: 0, dead: 0 });
        ok(empty.every(({ p50Ms, p95Ms }) => p50Ms === null && p95Ms === null));
      }
      const event = incoming();
      await store.receive([event]);
      const { receivedAt } = (await store.find('acme', event.id))!;
      await store.record({ ...noCounts(), received: 7 });
      await advance(3 * MINUTE_MS);
      await store.record({ ...noCounts(), received: 5 });
      const minutes = await store.activity(10);
      minutes.forEach(({ at }, index) => {
        equal(at.getTime() % MINUTE_MS, 0);
        if (index > 0) equal(at.getTime() - minutes[index - 1]!.at.getTime(), MINUTE_MS);
      });
      const busy = minutes.flatMap(({ received }, index) => (received > 0 ? [index] : []));
      deepEqual(
        busy.map((index) => minutes[index]!.received),
        [7, 5],
      );
      // The clock goes on while a test runs.
      ok([3, 4].includes(busy[1]! - busy[0]!));
      ok([8, 9].includes(busy[1]!));
      ok(minutes.at(-1)!.at.getTime() > receivedAt.getTime() - MINUTE_MS);
    },
  },
  {
    title: 'tells within what time half, and 95 of 100, of a minute were handled',
    async run({ store, another, advance }) {
      const other = await another();
      const minute = await withinOneMinute(store, advance, async () => {
        await store.record(handledIn(...Array<number>(60).fill(3)));
        await other.record(handledIn(...Array<number>(34).fill(40)));
        await store.record(handledIn(...Array<number>(5).fill(700), 90_000_000));
      });
      equal(minute.handled, 100);
      // Bounds of buckets: at most 5 ms, at most a second.
      deepEqual([minute.p50Ms, minute.p95Ms], [5, 1000]);
      await advance(2 * MINUTE_MS);
      const slow = await withinOneMinute(store, advance, () => store.record(handledIn(90_000_000)));
      // The longest stand for whatever is longer.
      deepEqual([slow.p50Ms, slow.p95Ms], [86_400_000, 86_400_000]);
    },
  },
  {
    title: 'keeps the minutes of a day, and answers for no more once they are pruned',
    async run({ store, advance }) {
      await store.record({ ...noCounts(), received: 1 });
      await advance(1435 * MINUTE_MS);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 1 });
      equal(sum(await store.activity(1440))['received'], 1);
      equal(sum(await store.activity(60))['received'], 0);
      await advance(10 * MINUTE_MS);
      equal(await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 1 }), 0);
      equal(sum(await store.activity(1440))['received'], 0);
    },
  },
  {
    title: 'tells how old an event is when it is claimed',
    async run({ store, advance }) {
      await store.receive([incoming()]);
      await advance(45_000);
      const { ageMs } = await claimOne(store);
      ok(ageMs >= 45_000 && ageMs < 75_000, `${ageMs} ms old`);
    },
  },
  {
    title: '23: keeps ages and minutes right between workers whose clocks are 10 minutes off',
    needs: 'ownClock',
    async run({ store, another }) {
      const early = await another({ clockOffsetMs: -600_000 });
      const late = await another({ clockOffsetMs: 600_000 });
      for (const own of [early, late]) {
        await early.receive([incoming()]);
        const claimed = await claimOne(own);
        ok(claimed.ageMs >= 0 && claimed.ageMs < 30_000, `${claimed.ageMs} ms old`);
        await own.complete(claimed);
        await own.record({ ...noCounts(), received: 1 });
      }
      for (const own of [store, early, late]) equal(sum(await own.activity(2))['received'], 2);
    },
  },
];
