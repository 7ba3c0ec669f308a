import { deepEqual, equal, ok } from 'node:assert/strict';
import { incoming, LEASE_MS, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const LOST = { settled: false, nextDue: false };

export const settleCases: readonly InboxContractCase[] = [
  {
    title: 'IN-13 refuses complete, fail and release of a stale holder by its fencing token',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      const event = incoming();
      await store.receive([event]);
      const stale = await worker.claimOne();
      await other.outlive(advance);
      const refused = async () => {
        deepEqual(await store.complete(stale), LOST);
        deepEqual(await store.fail(stale, { error: 'stale', retryInMs: null }), LOST);
        deepEqual(await store.release(stale), LOST);
      };
      await refused();
      deepEqual(await states(store, event), { book: 'pending 0' });
      const held = (await other.claimSuspect(false))!;
      ok(held.token > stale.token);
      await refused();
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await other.store.complete(held)).settled, true);
      deepEqual(await other.store.complete(held), LOST);
      await refused();
      deepEqual(await states(store, event), { book: 'done 1' });
    },
  },
  {
    title: 'IN-13 accepts a settlement that is ten leases late, if nobody took over',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming(), incoming(), incoming()]);
      const [a, b, c] = await worker.claim();
      await advance(10 * LEASE_MS);
      equal((await store.complete(a!)).settled, true);
      equal((await store.fail(b!, { error: 'no', retryInMs: 0 })).settled, true);
      equal((await store.release(c!)).settled, true);
    },
  },
  {
    title: 'IN-13 refuses the lease of an event that was deleted and received again',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const old = await worker.claimOne();
      await store.complete(old);
      await advance(2000);
      while ((await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 10 })) > 0);
      equal((await store.receive([event]))[0]!.outcome, 'stored');
      const lease = await worker.claimOne();
      deepEqual(await store.complete(old), LOST);
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'refuses the lease of another company, event, handler or token',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ handlers: ['book', 'mail'] });
      await store.receive([event, incoming({ id: event.id, company: 'umbrella' })]);
      const lease = (await worker.claim()).find(({ company }) => company === 'acme')!;
      for (const changed of [
        { handler: 'mail' },
        { handler: 'none' },
        { token: lease.token + 1 },
        { token: lease.token - 1 },
        { id: 'no such event', seq: lease.seq + 1000 },
      ]) {
        deepEqual(await store.complete({ ...lease, ...changed }), LOST);
      }
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-15 retries only the delivery that failed, of three of one event',
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
    title: 'IN-18 makes a failed delivery due after its wait, and dead if there is none',
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
    title: 'IN-24 makes a released delivery due at once, without charging the attempt',
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
      deepEqual(await store.complete(first), LOST);
    },
  },
  {
    title: 'makes a released delivery due later, if that is given',
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
    title: 'settles 200 deliveries at once, each once',
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
];
