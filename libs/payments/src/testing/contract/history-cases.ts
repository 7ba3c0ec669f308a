import { deepEqual, equal, ok } from 'node:assert/strict';
import type { DeliveryAttempt, InboxStore, StoredDelivery } from '../../inbox/store/inbox-store.js';
import { historyOf, incoming, NOW, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

/** How far two clock readings of one operation may be apart on a slow machine. */
const SLACK_MS = 10_000;

async function deliveryOf(store: InboxStore, id: string): Promise<StoredDelivery> {
  const event = await store.find('acme', id);
  return event!.deliveries[0]!;
}

function tookAbout({ startedAt, endedAt }: DeliveryAttempt, ms: number): void {
  const took = endedAt.getTime() - startedAt.getTime();
  ok(took >= ms - 5 && took < ms + SLACK_MS, `took ${took} ms, not about ${ms}`);
}

export const historyCases: readonly InboxContractCase[] = [
  {
    title: 'IN-12 keeps how each attempt ended, and when: failed, lost, done',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      const event = incoming();
      await store.receive([event]);
      deepEqual(await historyOf(store, event), []);
      const failed = await worker.claimOne();
      await advance(3000);
      await store.fail(failed, { error: 'no luck', retryInMs: 0 });
      deepEqual(await historyOf(store, event), [[1, 'failed', 'no luck']]);
      await worker.claimOne();
      await other.outlive(advance);
      const again = (await other.claimSuspect(false))!;
      await advance(20_000);
      await other.store.complete(again);
      deepEqual(await historyOf(store, event), [
        [1, 'failed', 'no luck'],
        [2, 'lost', null],
        [2, 'done', null],
      ]);
      const { history } = await deliveryOf(other.store, event.id);
      for (const [index, ms] of [3000, 61_000, 20_000].entries()) tookAbout(history[index]!, ms);
    },
  },
  {
    title: 'measures the times of an attempt by the clock of the receipt',
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
    title:
      'adds nothing to the history if a delivery is released, skipped, or settled without its lease',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const first = await worker.claimOne();
      await store.release(first);
      equal((await store.complete(first)).settled, false);
      equal((await store.fail(first, { error: 'stale', retryInMs: 0 })).settled, false);
      await store.skip([{ company: 'acme', id: event.id, handlers: ['book'] }]);
      deepEqual(await historyOf(store, event), []);
    },
  },
  {
    title: 'IN-20 keeps the history of a redriven delivery, whose attempts begin from 1 again',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
      await store.fail(await worker.claimOne(), { error: 'never', retryInMs: null });
      await store.redrive([{ company: 'acme', id: event.id, handlers: ['book'] }], NOW);
      await store.complete(await worker.claimOne());
      deepEqual(await historyOf(store, event), [
        [1, 'failed', 'no'],
        [2, 'failed', 'never'],
        [1, 'done', null],
      ]);
    },
  },
  {
    title: 'keeps the last 20 attempts, and 1,000 characters of an error',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      for (let attempt = 1; attempt <= 25; attempt += 1) {
        const error = `${attempt}: ${'x'.repeat(5000)}`;
        await store.fail(await worker.claimOne(), { error, retryInMs: 0 });
      }
      const { history, lastError } = await deliveryOf(store, event.id);
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
    title: 'keeps an error of any characters, the same in the history and in the last error',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const error = 'a "quoted" \\ error \u0000 \ud800 \ue0000041 — [1, 2, "d"] 支払い';
      await store.fail(await worker.claimOne(), { error, retryInMs: null });
      const { history, lastError } = await deliveryOf(store, event.id);
      ok(lastError!.startsWith('a "quoted" \\ error'));
      equal(history[0]!.error, lastError);
    },
  },
];
