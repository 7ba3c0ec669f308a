import { deepEqual, equal, ok } from 'node:assert/strict';
import { claim, claimOne, incoming, LEASE_MS, states } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

export const settleCases: readonly InboxContractCase[] = [
  {
    title: '13: refuses completion, failure, release and heartbeat of a stale holder',
    async run({ store, another, advance }) {
      const event = incoming();
      await store.receive([event]);
      const stale = await claimOne(store);
      await advance(LEASE_MS + 1000);
      const other = await another();
      const held = await claimOne(other);
      equal(await store.extend(stale, LEASE_MS), false);
      equal(await store.complete(stale), false);
      equal(await store.fail(stale, { error: 'stale', retryInMs: null }), false);
      equal(await store.release(stale), false);
      deepEqual(await states(store, event), { book: 'running 2' });
      ok(await other.complete(held));
      equal(await other.complete(held), false);
      deepEqual(await states(store, event), { book: 'done 2' });
    },
  },
  {
    title: '13: counts a lease that ran out as lost, even if nobody took over',
    async run({ store, advance }) {
      await store.receive([incoming()]);
      const lease = await claimOne(store);
      await advance(LEASE_MS + 1000);
      equal(await store.extend(lease, LEASE_MS), false);
      equal(await store.complete(lease), false);
      equal((await claimOne(store)).attempt, 2);
    },
  },
  {
    title: '14: keeps a delivery leased as long as heartbeats come',
    async run({ store, advance }) {
      await store.receive([incoming()]);
      const lease = await claimOne(store);
      for (let beat = 0; beat < 5; beat += 1) {
        await advance(LEASE_MS / 2);
        ok(await store.extend(lease, LEASE_MS));
        equal((await claim(store)).length, 0);
      }
      ok(await store.complete(lease));
    },
  },
  {
    title: '15: retries only the delivery that failed, of three of one event',
    async run({ store, advance }) {
      const event = incoming({ handlers: ['book', 'mail', 'print'] });
      await store.receive([event]);
      for (const handler of ['book', 'mail', 'print']) {
        const lease = await claimOne(store, handler);
        if (handler === 'mail') await store.fail(lease, { error: 'smtp', retryInMs: 5000 });
        else await store.complete(lease);
      }
      await advance(6000);
      const due = await claim(store, ['book', 'mail', 'print']);
      deepEqual(
        due.map(({ handler, attempt }) => [handler, attempt]),
        [['mail', 2]],
      );
    },
  },
  {
    title: '18: makes a failure due after its wait, and dead where there is none',
    async run({ store, advance }) {
      const event = incoming();
      await store.receive([event]);
      await store.fail(await claimOne(store), { error: 'once\u0000more', retryInMs: 30_000 });
      equal((await claim(store)).length, 0);
      const wait = await store.nextDueInMs(['book']);
      ok(wait !== null && wait > 20_000 && wait <= 30_000, `waits ${wait} ms`);
      await advance(29_000);
      equal((await claim(store)).length, 0);
      await advance(2000);
      const again = await claimOne(store);
      equal(again.attempt, 2);
      equal(again.takenOver, false);
      await store.fail(again, { error: 'for good', retryInMs: null });
      const [delivery] = (await store.find('acme', event.id))!.deliveries;
      equal(delivery?.state, 'dead');
      equal(delivery.lastError, 'for good');
      equal(delivery.dueAt, null);
      ok(delivery.finishedAt instanceof Date);
      equal(await store.nextDueInMs(['book']), null);
    },
  },
  {
    title: '24: gives a released delivery back at once, without charging the attempt',
    async run({ store }) {
      const event = incoming();
      await store.receive([event]);
      const first = await claimOne(store);
      ok(await store.release(first));
      deepEqual(await states(store, event), { book: 'pending 0' });
      const second = await claimOne(store);
      equal(second.attempt, 1);
      equal(second.takenOver, false);
      ok(second.token > first.token);
      equal(await store.complete(first), false);
    },
  },
  {
    title: '19: gives a delivery back for later, without charging the attempt',
    async run({ store, advance }) {
      const event = incoming();
      await store.receive([event]);
      ok(await store.release(await claimOne(store), 5000));
      deepEqual(await states(store, event), { book: 'pending 0' });
      equal((await claim(store)).length, 0);
      await advance(6000);
      equal((await claimOne(store)).attempt, 1);
    },
  },
];
