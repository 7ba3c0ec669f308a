import { deepEqual, equal, ok } from 'node:assert/strict';
import type {
  ActivityCounts,
  ActivityMinute,
  InboxActivity,
  InboxStore,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming, listAll, twoWorkers } from './contract-fixtures.ts';
import type { InboxContractCase, TestWorker } from './contract-fixtures.ts';

const MINUTE_MS = 60_000;
/** Enough for every minute so far to be closed. */
const CLOSED_MS = 2 * MINUTE_MS;

const NOTHING: ActivityCounts = {
  received: 0,
  done: 0,
  failed: 0,
  dead: 0,
  p50Ms: null,
  p95Ms: null,
};

type Counted = Record<'received' | 'done' | 'failed' | 'dead', number> & { tookMs: number[] };

/** The expected activity, from every stored row: by minute, then by handler; `null` means all handlers. */
async function fullScan(store: InboxStore): Promise<Map<number, Map<string | null, Counted>>> {
  const minutes = new Map<number, Map<string | null, Counted>>();
  const count = (at: Date, handlers: readonly (string | null)[], add: (to: Counted) => void) => {
    const startsAt = Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS;
    const minute = minutes.get(startsAt) ?? new Map<string | null, Counted>();
    minutes.set(startsAt, minute);
    for (const handler of handlers) {
      const counted = minute.get(handler) ?? {
        received: 0,
        done: 0,
        failed: 0,
        dead: 0,
        tookMs: [],
      };
      minute.set(handler, counted);
      add(counted);
    }
  };
  for (const { company, id } of await listAll(store)) {
    const { receivedAt, deliveries } = (await store.find(company, id))!;
    const names = deliveries.map(({ handler }) => handler);
    count(receivedAt, [null, ...names], (to) => (to.received += 1));
    for (const { handler, state, finishedAt, history } of deliveries) {
      const own = [null, handler];
      const ended = history.filter(({ outcome }) => outcome !== 'done');
      for (const { endedAt } of ended) count(endedAt, own, (to) => (to.failed += 1));
      if (state === 'dead') count(finishedAt!, own, (to) => (to.dead += 1));
      if (state !== 'done') continue;
      const tookMs = finishedAt!.getTime() - receivedAt.getTime();
      count(finishedAt!, own, (to) => {
        to.done += 1;
        to.tookMs.push(tookMs);
      });
    }
  }
  return minutes;
}

/** The nearest-rank percentile. */
function percentile(tookMs: readonly number[], share: number): number | null {
  const sorted = tookMs.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? null;
}

function equalCounts(actual: ActivityCounts, expected: Counted | undefined): void {
  const { received, done, failed, dead, p50Ms, p95Ms } = actual;
  const { tookMs = [], ...counts } = expected ?? { received: 0, done: 0, failed: 0, dead: 0 };
  deepEqual({ received, done, failed, dead }, counts);
  for (const [ms, share] of [
    [p50Ms, 0.5],
    [p95Ms, 0.95],
  ] as const) {
    const exact = percentile(tookMs, share);
    if (exact === null) equal(ms, null);
    // A store may keep finer times than it returns.
    else ok(ms !== null && Math.abs(ms - exact) <= 2, `p${share * 100} ${ms} ms, not ${exact} ms`);
  }
}

/** Fails unless the minutes are in order, without gaps and repetitions. */
function assertContiguous(minutes: readonly ActivityMinute[]): void {
  minutes.forEach(({ startsAt }, index) => {
    equal(startsAt.getTime() % MINUTE_MS, 0);
    if (index > 0) equal(startsAt.getTime() - minutes[index - 1]!.startsAt.getTime(), MINUTE_MS);
  });
}

/** Receives, completes, fails and retries deliveries for four minutes. */
async function workFourMinutes(
  worker: TestWorker,
  advance: (ms: number) => Promise<void>,
): Promise<void> {
  const { store } = worker;
  const handlers = ['book', 'mail'];
  for (let minute = 0; minute < 4; minute += 1) {
    const events = Array.from({ length: 5 }, (_, n) =>
      incoming({ handlers: n === 4 ? [] : n % 2 === 0 ? handlers : ['book'] }),
    );
    await store.receive(events);
    await store.receive([events[0]!]);
    await advance(15_000);
    for (const [n, lease] of (await worker.claim(handlers)).entries()) {
      if (n % 3 === 0) await store.fail(lease, { error: 'no', retryInMs: n === 3 ? null : 30_000 });
      else await store.complete(lease);
      await advance(500);
    }
    await advance(MINUTE_MS);
  }
}

/** Fails unless the counts of the range are those of all stored events, because all of them are in the range. */
async function assertRange(
  store: InboxStore,
  { events, deliveries, handlers }: Pick<InboxActivity, 'events' | 'deliveries' | 'handlers'>,
): Promise<void> {
  const stored = await listAll(store);
  const count = (wanted: (event: (typeof stored)[0]) => boolean) => stored.filter(wanted).length;
  const isTest = ({ eventType }: (typeof stored)[0]) => eventType === 'webhook.test';
  deepEqual(events, {
    webhook: count((event) => event.source === 'webhook' && !isTest(event)),
    poll: count(({ source }) => source === 'poll'),
    test: count(isTest),
    overdue: count(({ source }) => source === 'overdue'),
  });
  const all = stored.flatMap((event) => event.deliveries);
  for (const state of ['pending', 'running', 'done', 'dead', 'skipped'] as const) {
    const inState = all.filter((delivery) => delivery.state === state);
    equal(deliveries[state], inState.length, state);
    const ofBook = inState.filter(({ handler }) => handler === 'book').length;
    equal(handlers['book']?.[state], ofBook, `${state} of book`);
  }
}

const DAY_MS = 1440 * MINUTE_MS;

/** The counts of each closed minute. */
export const activityCases: readonly InboxContractCase[] = [
  {
    title: 'IN-38 the activity per minute and handler equals a full scan of the rows',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      await workFourMinutes(worker, advance);
      await store.receive([
        incoming({ handlers: ['audit'], source: 'poll' }),
        incoming({ handlers: [], eventType: 'webhook.test' }),
        incoming({ handlers: [], source: 'overdue' }),
      ]);
      await worker.claimOne('audit');
      await other.declareOthersDead(advance);
      await advance(CLOSED_MS);
      const expected = await fullScan(store);
      ok(expected.size >= 4);
      const { minutes, completeFrom, ...range } = await other.store.activity(30, DAY_MS);
      await assertRange(store, range);
      equal(minutes.length, 30);
      assertContiguous(minutes);
      deepEqual(completeFrom, minutes[0]!.startsAt);
      for (const { startsAt, total, handlers } of minutes) {
        const scanned = expected.get(startsAt.getTime());
        expected.delete(startsAt.getTime());
        equalCounts(total, scanned?.get(null));
        for (const name of ['book', 'mail', 'audit']) {
          equalCounts(handlers[name] ?? NOTHING, scanned?.get(name));
        }
        const active = [...(scanned?.keys() ?? [])].filter((name) => name !== null);
        deepEqual(Object.keys(handlers).toSorted(), active.toSorted());
      }
      equal(expected.size, 0, 'minutes with activity are missing');
    },
  },
  {
    title:
      'IN-38 the activity contains only minutes that have ended, and counts each event at once',
    async run({ store, advance }) {
      const event = incoming();
      await store.receive([event]);
      const received = async () =>
        (await store.activity(10, DAY_MS)).minutes.reduce(
          (sum, { total }) => sum + total.received,
          0,
        );
      equal(await received(), 0);
      equal((await store.activity(10, DAY_MS)).events.webhook, 1);
      const { receivedAt } = (await store.find('acme', event.id))!;
      const last = (await store.activity(1, DAY_MS)).minutes[0]!;
      ok(last.startsAt.getTime() + MINUTE_MS <= receivedAt.getTime() + 2000);
      await advance(CLOSED_MS);
      equal(await received(), 1);
    },
  },
  {
    title:
      'IN-38 the activity is complete from the first minute whose events cannot have been pruned',
    async run({ store, advance }) {
      await store.receive([incoming({ handlers: [] })]);
      await advance(10 * MINUTE_MS);
      const { minutes, completeFrom } = await store.activity(30, 5 * MINUTE_MS);
      equal(
        minutes.reduce((sum, { total }) => sum + total.received, 0),
        1,
      );
      const complete = minutes.filter(({ startsAt }) => startsAt >= completeFrom);
      // The last minute ended 10 to 70 s ago.
      ok([3, 4].includes(complete.length), `${complete.length} complete minutes`);
      const { minutes: none, completeFrom: later } = await store.activity(1440, 1);
      equal(none.length, 1440);
      ok(later > none.at(-1)!.startsAt);
    },
  },
];
