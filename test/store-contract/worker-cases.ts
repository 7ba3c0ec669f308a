import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  attemptsOf,
  Crashes,
  incoming,
  LEASE_MS,
  states,
  TestWorker,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase, InboxUnderTest } from './contract-fixtures.ts';

/** Two workers of two processes, and an event whose delivery `worker` runs. */
async function running(inbox: InboxUnderTest) {
  const [worker, other] = await twoWorkers(inbox);
  const event = incoming();
  await inbox.store.receive([event]);
  return { worker, other, event, lease: await worker.claimOne() };
}

/** Heartbeats, dead workers and retired workers. */
export const workerCases: readonly InboxContractCase[] = [
  {
    title:
      'IN-12 a worker without heartbeats loses its deliveries, and their attempts are not counted',
    needs: 'shared',
    async run(inbox) {
      const { worker, other, event } = await running(inbox);
      const { store, advance } = inbox;
      equal((await other.declareOthersDead(advance)).alive, true);
      deepEqual(await states(store, event), { book: 'pending 0' });
      deepEqual(await attemptsOf(store, event), [[1, 'lost', null]]);
      const [delivery] = (await store.find('acme', event.id))!.deliveries;
      const { startedAt, endedAt } = delivery!.history[0]!;
      const tookMs = endedAt.getTime() - startedAt.getTime();
      ok(tookMs >= LEASE_MS && tookMs < LEASE_MS + 30_000, `lost after ${tookMs} ms`);
      equal((await worker.heartbeat()).alive, false);
      equal((await worker.heartbeat()).alive, false);
      equal((await other.heartbeat()).alive, true);
      deepEqual(await attemptsOf(store, event), [[1, 'lost', null]]);
    },
  },
  {
    title: 'IN-12 a worker is declared dead after its own leaseMs, and not before',
    needs: 'shared',
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
    title: 'IN-14 a worker keeps its deliveries as long as it sends heartbeats',
    async run(inbox) {
      const { worker, other, event, lease } = await running(inbox);
      const { store, advance } = inbox;
      for (let n = 0; n < 5; n += 1) {
        await advance(LEASE_MS / 2);
        equal((await worker.heartbeat()).alive, true);
        deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      }
      // If all heartbeats were late, only a new worker would declare workers dead.
      const newest = await TestWorker.start(store);
      deepEqual(await newest.heartbeat(), { alive: true, suspects: false });
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-13 a late heartbeat keeps a worker alive if no other worker declared it dead',
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
    title: 'the heartbeat of an unregistered worker returns alive: false',
    needs: 'shared',
    async run({ store }) {
      const id = '00000000-0000-4000-8000-000000000000';
      deepEqual(await store.heartbeat(id), { alive: false, suspects: false });
    },
  },
  {
    title: 'IN-12 the next heartbeat frees a delivery that a dead worker claimed',
    needs: 'shared',
    async run(inbox) {
      const [worker, other] = await twoWorkers(inbox);
      const { store, advance } = inbox;
      await other.declareOthersDead(advance);
      const event = incoming();
      await store.receive([event]);
      const [lease] = await worker.claim();
      await other.heartbeat();
      deepEqual(await states(store, event), { book: 'pending 0' });
      if (lease !== undefined) equal((await store.complete(lease)).settled, false);
    },
  },
  {
    title: 'IN-13 a late heartbeat, as after an outage of the store, declares no worker dead',
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
    title: 'IN-12 concurrent heartbeats free each delivery of a dead worker once',
    needs: 'shared',
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
      const heartbeats = await Promise.all(others.map((other) => other.heartbeat()));
      ok(heartbeats.every(({ alive }) => alive));
      // One heartbeat may have passed over deliveries that another one was freeing.
      await others[0]!.heartbeat();
      for (const event of events) {
        deepEqual(await states(store, event), { book: 'pending 0' });
        deepEqual(await attemptsOf(store, event), [[1, 'lost', null]]);
      }
    },
  },
  {
    title: 'IN-24 a retiring worker without running deliveries is removed immediately',
    needs: 'shared',
    async run(inbox) {
      const [worker, other] = await twoWorkers(inbox);
      await worker.store.retire(worker.id, LEASE_MS);
      equal((await other.heartbeat()).alive, true);
      equal((await worker.heartbeat()).alive, false);
      await inbox.store.retire(worker.id, LEASE_MS);
    },
  },
  {
    title:
      'IN-24 a retired worker can settle during its grace period, after which its deliveries are freed',
    needs: 'shared',
    async run(inbox) {
      const [worker, other] = await twoWorkers(inbox);
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
      deepEqual(await attemptsOf(store, freed), []);
      equal((await store.complete(second)).settled, false);
      equal(await other.claimSuspect(['mail']), null);
      const again = await other.claimOne('mail');
      equal(again.attempt, 1);
      equal(again.crashes, 0);
      ok(again.token > second.token);
      deepEqual(await states(store, settled), { book: 'done 1' });
    },
  },
  {
    title:
      'IN-24 a retired worker keeps its deliveries during its grace period, even after the end of its lease',
    async run(inbox) {
      const { worker, other, event, lease } = await running(inbox);
      const { store, advance } = inbox;
      await store.retire(worker.id, 10 * LEASE_MS);
      await other.declareOthersDead(advance);
      await advance(LEASE_MS / 2);
      await other.declareOthersDead(advance);
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title:
      'IN-24 a worker that retired with a grace period of 0 loses its deliveries at the next heartbeat',
    needs: 'shared',
    async run(inbox) {
      const { worker, other } = await running(inbox);
      const { store, advance } = inbox;
      await store.retire(worker.id, 0);
      await advance(10);
      deepEqual(await other.heartbeat(), { alive: true, suspects: false });
      equal((await other.claimOne()).attempt, 1);
    },
  },
  {
    title: 'IN-19 a suspect stays a suspect after its worker retired',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      await crashes.addSuspect();
      const retiring = await TestWorker.start(store);
      equal((await retiring.claimSuspect())?.crashes, 1);
      await store.retire(retiring.id, 0);
      const { observer } = crashes;
      equal((await observer.heartbeat()).suspects, true);
      deepEqual(await observer.claim(), []);
      const again = await observer.claimSuspect();
      deepEqual([again?.attempt, again?.crashes], [1, 1]);
    },
  },
  {
    title: 'IN-19 the next heartbeat frees a suspect that an unregistered worker claimed',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      await crashes.addSuspect();
      const worker = randomUUID();
      await store.claimSuspect({ workerId: worker, handlers: ['book'] });
      await crashes.observer.heartbeat();
      ok((await crashes.observer.claimSuspect())!.crashes >= 1);
    },
  },
];
