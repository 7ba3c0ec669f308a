import { deepEqual, equal, ok } from 'node:assert/strict';
import type { DeliveryAttempt, StoredDelivery } from '../../inbox/inbox-store.js';
import type { InboxStore } from '../../inbox/inbox-store.js';
import { claim, claimOne, incoming, LEASE_MS } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

/** How far two clock readings of one statement may be apart, with what a slow machine does between two. */
const SLACK_MS = 10_000;

async function deliveryOf(store: InboxStore, id: string): Promise<StoredDelivery> {
  const event = await store.find('acme', id);
  return event!.deliveries[0]!;
}

/** Attempt, outcome and error of each. */
async function historyOf(store: InboxStore, id: string): Promise<unknown[][]> {
  const { history } = await deliveryOf(store, id);
  return history.map(({ attempt, outcome, error }) => [attempt, outcome, error]);
}

function tookAbout({ startedAt, endedAt }: DeliveryAttempt, ms: number): void {
  const took = endedAt.getTime() - startedAt.getTime();
  ok(took >= ms - 5 && took < ms + SLACK_MS, `took ${took} ms, not about ${ms}`);
}

export const historyCases: readonly InboxContractCase[] = [
  {
    title: 'keeps how each attempt ended, and when: failed, lost, done',
    async run({ store, another, advance }) {
      const event = incoming();
      await store.receive([event]);
      deepEqual(await historyOf(store, event.id), []);
      const failed = await claimOne(store);
      await advance(3000);
      await store.fail(failed, { error: 'no luck', retryInMs: 0 });
      deepEqual(await historyOf(store, event.id), [[1, 'failed', 'no luck']]);
      await claimOne(store);
      await advance(LEASE_MS + 30_000);
      const other = await another();
      const taken = await claimOne(other);
      const known = [
        [1, 'failed', 'no luck'],
        [2, 'lost', null],
      ];
      deepEqual(await historyOf(store, event.id), known);
      await advance(20_000);
      await other.complete(taken);
      const { history } = await deliveryOf(store, event.id);
      deepEqual(await historyOf(store, event.id), [...known, [3, 'done', null]]);
      // The lost one ended with its lease, not when somebody took over.
      for (const [index, ms] of [3000, LEASE_MS, 20_000].entries()) tookAbout(history[index]!, ms);
    },
  },
  {
    title: 'tells the times of an attempt by the clock that tells when its event was received',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      await store.complete(await claimOne(store));
      const found = (await store.find('acme', event.id))!;
      const { history, finishedAt } = found.deliveries[0]!;
      for (const time of [history[0]!.startedAt, history[0]!.endedAt, finishedAt!]) {
        const sinceMs = time.getTime() - found.receivedAt.getTime();
        ok(sinceMs >= -5 && sinceMs < SLACK_MS, `${sinceMs} ms after the receipt`);
      }
    },
  },
  {
    title: 'adds a commit to the history, and nothing for one that was rolled back',
    needs: 'transactional',
    async run({ store, effects }) {
      const event = incoming();
      await store.receive([event]);
      const lease = await claimOne(store);
      const failing = store.commit(lease, () => {
        throw new RangeError('the work failed');
      });
      await failing.catch(() => {});
      deepEqual(await historyOf(store, event.id), []);
      await store.commit(lease, (tx) => effects!.write(tx, 'booked'));
      deepEqual(await historyOf(store, event.id), [[1, 'done', null]]);
    },
  },
  {
    title: 'adds nothing for what was given back, prolonged, skipped, or tried without a lease',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      const first = await claimOne(store);
      await store.extend(first, LEASE_MS);
      await store.release(first);
      equal(await store.complete(first), false);
      equal(await store.fail(first, { error: 'stale', retryInMs: 0 }), false);
      await store.skip([{ company: 'acme', id: event.id, handlers: ['book'] }]);
      deepEqual(await historyOf(store, event.id), []);
    },
  },
  {
    title: 'keeps the history where a delivery is redriven, whose attempts begin from 1 again',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      await store.fail(await claimOne(store), { error: 'no', retryInMs: 0 });
      await store.fail(await claimOne(store), { error: 'never', retryInMs: null });
      const selection = [{ company: 'acme', id: event.id, handlers: ['book'] }];
      await store.redrive(selection, { force: false, dueInMs: [0] });
      await store.complete(await claimOne(store));
      deepEqual(await historyOf(store, event.id), [
        [1, 'failed', 'no'],
        [2, 'failed', 'never'],
        [1, 'done', null],
      ]);
    },
  },
  {
    title: 'notes a lost attempt once, where another delivery of its key goes first',
    async run({ store, advance }) {
      const [first, second] = [incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })];
      await store.receive([first, second]);
      const [lost] = await claim(store);
      await advance(LEASE_MS + 1000);
      for (let left = 2; left > 0; left -= 1) await store.complete((await claim(store))[0]!);
      const other = lost!.id === first.id ? second : first;
      deepEqual(await historyOf(store, lost!.id), [
        [1, 'lost', null],
        [2, 'done', null],
      ]);
      deepEqual(await historyOf(store, other.id), [[1, 'done', null]]);
    },
  },
  {
    title: 'keeps the last 20 attempts, and 1,000 characters of an error',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      for (let attempt = 1; attempt <= 25; attempt += 1) {
        const error = `${attempt}: ${'x'.repeat(5000)}`;
        await store.fail(await claimOne(store), { error, retryInMs: 0 });
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
    title: 'keeps an error of any characters in the history as in the last error',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      const error = 'a "quoted" \\ error \u0000 \ud800 \ue0000041 — [1, 2, "d"] 支払い';
      await store.fail(await claimOne(store), { error, retryInMs: null });
      const { history, lastError } = await deliveryOf(store, event.id);
      ok(lastError!.startsWith('a "quoted" \\ error'));
      equal(history[0]!.error, lastError);
    },
  },
  {
    title: 'lists deliveries without their histories, and events without their headers',
    async run({ store }) {
      await store.receive([incoming({ headers: { 'user-agent': 'a' } })]);
      await store.fail(await claimOne(store), { error: 'no', retryInMs: 0 });
      const query = { filter: {}, order: 'oldest', limit: 10, after: null } as const;
      const [event] = (await store.list(query)).events;
      deepEqual(event!.headers, {});
      deepEqual(
        event!.deliveries.map(({ attempts, history }) => [attempts, history]),
        [[1, []]],
      );
    },
  },
];
