import { deepEqual, equal, ok } from 'node:assert/strict';
import { historyOf, incoming, LEASE_MS, states, TestWorker } from './contract-fixtures.js';
import type { ClaimedDelivery, IncomingEvent } from '../../inbox/store/inbox-store.js';
import type { InboxContractCase, InboxUnderTest } from './contract-case.js';

/** Two workers of two processes. */
async function two({ store, another }: InboxUnderTest): Promise<[TestWorker, TestWorker]> {
  return [await TestWorker.start(store), await TestWorker.start(await another())];
}

/** Two workers of two processes, and an event whose delivery the first one runs. */
async function running(inbox: InboxUnderTest): Promise<{
  worker: TestWorker;
  other: TestWorker;
  event: IncomingEvent;
  lease: ClaimedDelivery;
}> {
  const [worker, other] = await two(inbox);
  const event = incoming();
  await inbox.store.receive([event]);
  return { worker, other, event, lease: await worker.claimOne() };
}

export const workerCases: readonly InboxContractCase[] = [
  {
    title:
      'IN-12 frees the deliveries of a worker that sends no heartbeats, with the attempt lost and not charged',
    async run(inbox) {
      const { worker, other, event } = await running(inbox);
      const { store, advance } = inbox;
      equal((await other.outlive(advance)).alive, true);
      deepEqual(await states(store, event), { book: 'pending 0' });
      deepEqual(await historyOf(store, event), [[1, 'lost', null]]);
      const [delivery] = (await store.find('acme', event.id))!.deliveries;
      const { startedAt, endedAt } = delivery!.history[0]!;
      const tookMs = endedAt.getTime() - startedAt.getTime();
      ok(tookMs >= LEASE_MS && tookMs < LEASE_MS + 30_000, `lost after ${tookMs} ms`);
      equal((await worker.heartbeat()).alive, false);
      equal((await worker.heartbeat()).alive, false);
      equal((await other.heartbeat()).alive, true);
      deepEqual(await historyOf(store, event), [[1, 'lost', null]]);
    },
  },
  {
    title: 'IN-12 declares a worker dead after its own lease, and not before',
    async run({ store, another, advance }) {
      const short = await TestWorker.start(store);
      const long = await TestWorker.start(store, [], 4 * LEASE_MS);
      const observer = await TestWorker.start(await another());
      const [a, b] = [incoming(), incoming({ handlers: ['mail'] })];
      await store.receive([a, b]);
      await short.claimOne();
      await long.claimOne('mail');
      await observer.heartbeat();
      await advance(LEASE_MS - 20_000);
      await observer.heartbeat();
      deepEqual(await states(store, a), { book: 'running 1' });
      await advance(21_000);
      await observer.heartbeat();
      deepEqual(await states(store, a), { book: 'pending 0' });
      deepEqual(await states(store, b), { mail: 'running 1' });
      await advance(3 * LEASE_MS);
      await observer.heartbeat();
      deepEqual(await states(store, b), { mail: 'pending 0' });
    },
  },
  {
    title: 'IN-14 keeps the deliveries of a worker as long as it sends heartbeats',
    async run(inbox) {
      const { worker, other, event, lease } = await running(inbox);
      const { store, advance } = inbox;
      for (let beat = 0; beat < 5; beat += 1) {
        await advance(LEASE_MS / 2);
        equal((await worker.heartbeat()).alive, true);
        deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      }
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-13 keeps a worker alive whose heartbeat is late, if nobody declared it dead',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const lease = await worker.claimOne();
      await advance(10 * LEASE_MS);
      deepEqual(await worker.heartbeat(), { alive: true, suspects: false });
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'answers the heartbeat of a worker that never registered as not alive',
    async run({ store }) {
      const id = '00000000-0000-4000-8000-000000000000';
      deepEqual(await store.heartbeat(id), { alive: false, suspects: false });
    },
  },
  {
    title: 'IN-12 frees what was claimed for a dead worker at the next heartbeat',
    async run(inbox) {
      const [worker, other] = await two(inbox);
      const { store, advance } = inbox;
      await other.outlive(advance);
      const event = incoming();
      await store.receive([event]);
      const [lease] = await worker.claim();
      await other.heartbeat();
      deepEqual(await states(store, event), { book: 'pending 0' });
      if (lease !== undefined) equal((await store.complete(lease)).settled, false);
    },
  },
  {
    title:
      'IN-13 declares nobody dead with a heartbeat that is late itself, as after an outage of the store',
    async run(inbox) {
      const { worker, other, event, lease } = await running(inbox);
      const { store, advance } = inbox;
      await other.heartbeat();
      await advance(LEASE_MS + 1000);
      equal((await other.store.heartbeat(other.id)).alive, true);
      equal((await worker.store.heartbeat(worker.id)).alive, true);
      equal((await store.complete(lease)).settled, true);
      deepEqual(await states(store, event), { book: 'done 1' });
    },
  },
  {
    title: 'IN-12 frees each delivery once, if several workers see the death at the same time',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store);
      const others = [];
      for (let n = 0; n < 3; n += 1) others.push(await TestWorker.start(await another()));
      const events = Array.from({ length: 100 }, (_, n) =>
        incoming({ orderingKey: n % 2 === 0 ? `key ${n}` : null }),
      );
      await store.receive(events);
      equal((await worker.claim()).length, 100);
      for (const other of others) await other.heartbeat();
      await advance(LEASE_MS - 10_000);
      for (const other of others) await other.heartbeat();
      await advance(11_000);
      const answers = await Promise.all(others.map((other) => other.heartbeat()));
      ok(answers.every(({ alive }) => alive));
      // One of them may have passed over what another one was freeing.
      await others[0]!.heartbeat();
      for (const event of events) {
        deepEqual(await states(store, event), { book: 'pending 0' });
        deepEqual(await historyOf(store, event), [[1, 'lost', null]]);
      }
    },
  },
  {
    title: 'IN-24 removes a retiring worker at once if it holds nothing',
    async run(inbox) {
      const [worker, other] = await two(inbox);
      await worker.store.retire(worker.id, LEASE_MS);
      equal((await other.heartbeat()).alive, true);
      equal((await worker.heartbeat()).alive, false);
      await inbox.store.retire(worker.id, LEASE_MS);
    },
  },
  {
    title:
      'IN-24 lets a retired worker settle within its grace, then frees what it still holds without a charge',
    async run(inbox) {
      const [worker, other] = await two(inbox);
      const { store, advance } = inbox;
      const [settled, freed] = [incoming(), incoming({ handlers: ['mail'] })];
      await store.receive([settled, freed]);
      const [first, second] = [await worker.claimOne(), await worker.claimOne('mail')];
      await store.retire(worker.id, 20_000);
      await advance(5000);
      deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      deepEqual(await states(store, freed), { mail: 'running 1' });
      equal((await store.complete(first)).settled, true);
      // A store without a clock of its own counts the grace from the next heartbeat of another worker.
      await advance(21_000);
      deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      deepEqual(await states(store, freed), { mail: 'pending 0' });
      deepEqual(await historyOf(store, freed), []);
      equal((await store.complete(second)).settled, false);
      equal(await other.claimSuspect(true, ['mail']), null);
      const again = await other.claimOne('mail');
      equal(again.attempt, 1);
      equal(again.crashes, 0);
      ok(again.token > second.token);
      deepEqual(await states(store, settled), { book: 'done 1' });
    },
  },
  {
    title: 'IN-24 keeps the deliveries of a retired worker for its grace, also past its lease',
    async run(inbox) {
      const { worker, other, event, lease } = await running(inbox);
      const { store, advance } = inbox;
      await store.retire(worker.id, 10 * LEASE_MS);
      await other.outlive(advance);
      await advance(LEASE_MS / 2);
      await other.outlive(advance);
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'frees the deliveries of a worker that retired with a grace of 0 at the next heartbeat',
    async run(inbox) {
      const { worker, other } = await running(inbox);
      const { store, advance } = inbox;
      await store.retire(worker.id, 0);
      await advance(10);
      deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      equal((await other.claimOne()).attempt, 1);
    },
  },
];
