import { deepEqual, equal, ok } from 'node:assert/strict';
import type {
  DeliveryAttempt,
  InboxStore,
  StoredDelivery,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  attemptsOf,
  REDRIVE_NOW,
  TestWorker,
  incoming,
  select,
  states,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** How far two clock readings of one operation may be apart on a slow machine. */
const SLACK_MS = 10_000;

async function deliveryOf(store: InboxStore, { id }: { id: string }): Promise<StoredDelivery> {
  const event = await store.find('acme', id);
  return event!.deliveries[0]!;
}

function tookAbout({ startedAt, endedAt }: DeliveryAttempt, ms: number): void {
  const took = endedAt.getTime() - startedAt.getTime();
  ok(took >= ms - 5 && took < ms + SLACK_MS, `took ${took} ms, not about ${ms}`);
}

/** The state, due time and history of a delivery after an attempt is settled. */
export const settleCases: readonly InboxContractCase[] = [
  {
    title: 'IN-15 of the three deliveries of an event, only the failed delivery is retried',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const handlers = ['book', 'mail', 'print'];
      await store.receive([incoming({ handlers })]);
      for (const handler of handlers) {
        const lease = await worker.claimOne(handler);
        if (handler === 'mail') await store.fail(lease, { error: 'smtp', retryInMs: 5000 });
        else await store.complete(lease);
      }
      equal((await worker.claim(handlers)).length, 0);
      await advance(6000);
      deepEqual(
        (await worker.claim(handlers)).map(({ handler, attempt }) => [handler, attempt]),
        [['mail', 2]],
      );
    },
  },
  {
    title: 'IN-18 a failed delivery is due after retryInMs, or dead if retryInMs is null',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.fail(await worker.claimOne(), { error: 'once', retryInMs: 30_000 });
      equal((await worker.claim()).length, 0);
      const [waiting] = (await store.find('acme', event.id))!.deliveries;
      equal(waiting!.lastError, 'once');
      equal(waiting!.finishedAt, null);
      await advance(20_000);
      equal((await worker.claim()).length, 0);
      await advance(11_000);
      const again = await worker.claimOne();
      equal(again.attempt, 2);
      equal((await store.find('acme', event.id))!.deliveries[0]!.dueAt, null);
      await store.fail(again, { error: 'for good', retryInMs: null });
      const [delivery] = (await store.find('acme', event.id))!.deliveries;
      equal(delivery!.state, 'dead');
      equal(delivery!.lastError, 'for good');
      equal(delivery!.dueAt, null);
      ok(delivery!.finishedAt instanceof Date);
      equal(await store.nextDueInMs(['book']), null);
      await advance(3_600_000);
      equal((await worker.claim()).length, 0);
    },
  },
  {
    title: 'IN-24 a released delivery is due immediately, and its attempt is not counted',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const first = await worker.claimOne();
      equal((await store.release(first)).settled, true);
      deepEqual(await states(store, event), { book: 'pending 0' });
      const second = await worker.claimOne();
      equal(second.attempt, 1);
      ok(second.token > first.token);
      equal((await store.complete(first)).settled, false);
    },
  },
  {
    title: 'IN-24 a released delivery is due after dueInMs if dueInMs is given',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.release(await worker.claimOne(), 15_000);
      deepEqual(await states(store, event), { book: 'pending 0' });
      equal((await worker.claim()).length, 0);
      await advance(16_000);
      equal((await worker.claimOne()).attempt, 1);
    },
  },
  {
    title: '200 concurrent settlements settle each delivery once',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const other = await another();
      const events = Array.from({ length: 200 }, (_, n) =>
        incoming({ orderingKey: n % 2 === 0 ? `key ${n}` : null }),
      );
      await store.receive(events);
      const leases = await worker.claim(['book'], 200);
      equal(leases.length, 200);
      const settled = await Promise.all(
        leases.flatMap((lease) => [store.complete(lease), other.complete(lease)]),
      );
      equal(settled.filter((one) => one.settled).length, 200);
      deepEqual((await store.stats()).deliveries, []);
    },
  },
  {
    title: 'IN-16 a settlement returns nextDue: false if no delivery of the key waits',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ orderingKey: 'k' })]);
      const lease = await worker.claimOne();
      await store.receive([incoming({ orderingKey: 'k', company: 'umbrella' }), incoming()]);
      deepEqual(await store.complete(lease), { settled: true, nextDue: false });
      deepEqual(await store.complete(lease), { settled: false, nextDue: false });
    },
  },
  {
    title: 'IN-15 the history has the outcome and the times of each attempt: failed, done',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      deepEqual(await attemptsOf(store, event), []);
      const failed = await worker.claimOne();
      await advance(3000);
      await store.fail(failed, { error: 'no luck', retryInMs: 0 });
      deepEqual(await attemptsOf(store, event), [[1, 'failed', 'no luck']]);
      const again = await worker.claimOne();
      await advance(20_000);
      await store.complete(again);
      deepEqual(await attemptsOf(store, event), [
        [1, 'failed', 'no luck'],
        [2, 'done', null],
      ]);
      const { history } = await deliveryOf(store, event);
      for (const [index, ms] of [3000, 20_000].entries()) tookAbout(history[index]!, ms);
    },
  },
  {
    title: 'IN-12 the history has the outcome and the times of each attempt: failed, lost, done',
    needs: 'shared',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      const event = incoming();
      await store.receive([event]);
      deepEqual(await attemptsOf(store, event), []);
      const failed = await worker.claimOne();
      await advance(3000);
      await store.fail(failed, { error: 'no luck', retryInMs: 0 });
      deepEqual(await attemptsOf(store, event), [[1, 'failed', 'no luck']]);
      await worker.claimOne();
      await other.declareOthersDead(advance);
      const again = (await other.claimSuspect())!;
      await advance(20_000);
      await other.store.complete(again);
      deepEqual(await attemptsOf(store, event), [
        [1, 'failed', 'no luck'],
        [2, 'lost', null],
        [2, 'done', null],
      ]);
      const { history } = await deliveryOf(other.store, event);
      for (const [index, ms] of [3000, 61_000, 20_000].entries()) tookAbout(history[index]!, ms);
    },
  },
  {
    title: 'the times of an attempt and of the receipt come from the same clock',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.complete(await worker.claimOne());
      const found = (await store.find('acme', event.id))!;
      const { history, finishedAt } = found.deliveries[0]!;
      for (const time of [history[0]!.startedAt, history[0]!.endedAt, finishedAt!]) {
        const sinceMs = time.getTime() - found.receivedAt.getTime();
        ok(sinceMs >= -5 && sinceMs < SLACK_MS, `${sinceMs} ms after the receipt`);
      }
    },
  },
  {
    title: 'a release, a skip and a settlement without a lease add nothing to the history',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const first = await worker.claimOne();
      await store.release(first);
      equal((await store.complete(first)).settled, false);
      equal((await store.fail(first, { error: 'stale', retryInMs: 0 })).settled, false);
      await store.skip(select(event.id));
      deepEqual(await attemptsOf(store, event), []);
    },
  },
  {
    title: 'IN-20 a redrive keeps the history, and attempts start at 1 again',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
      await store.fail(await worker.claimOne(), { error: 'never', retryInMs: null });
      await store.redrive(select(event.id), REDRIVE_NOW);
      await store.complete(await worker.claimOne());
      deepEqual(await attemptsOf(store, event), [
        [1, 'failed', 'no'],
        [2, 'failed', 'never'],
        [1, 'done', null],
      ]);
    },
  },
  {
    title: 'a history keeps the last 20 attempts and 1,000 characters of each error',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      for (let attempt = 1; attempt <= 25; attempt += 1) {
        const error = `${attempt}: ${'x'.repeat(5000)}`;
        await store.fail(await worker.claimOne(), { error, retryInMs: 0 });
      }
      const { history, lastError } = await deliveryOf(store, event);
      deepEqual(
        history.map(({ attempt }) => attempt),
        Array.from({ length: 20 }, (_, index) => index + 6),
      );
      for (const { attempt, error } of history) {
        ok(error!.startsWith(`${attempt}: x`));
        equal(error!.length, 1000);
      }
      equal(lastError, history.at(-1)!.error);
    },
  },
  {
    title: 'an error may have any characters and is the same in the history and in lastError',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const error = 'a "quoted" \\ error \u0000 \ud800 \ue0000041 — [1, 2, "d"] 支払い';
      await store.fail(await worker.claimOne(), { error, retryInMs: null });
      const { history, lastError } = await deliveryOf(store, event);
      ok(lastError!.startsWith('a "quoted" \\ error'));
      equal(history[0]!.error, lastError);
    },
  },
];
