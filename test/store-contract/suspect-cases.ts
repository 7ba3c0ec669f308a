import { deepEqual, equal, ok } from 'node:assert/strict';
import {
  attemptsOf,
  Crashes,
  REDRIVE_FORCED,
  REDRIVE_NOW,
  select,
  states,
  TestWorker,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** Suspects: deliveries whose process died while they ran. */
export const suspectCases: readonly InboxContractCase[] = [
  {
    title: 'IN-19 deliveries of a dead process become suspects, which normal claims do not lease',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store, observer } = crashes;
      const event = crashes.event();
      await store.receive([event]);
      equal(await observer.claimSuspect(), null);
      equal((await observer.heartbeat()).suspects, false);
      await crashes.crash((worker) => worker.claimOne());
      equal((await observer.heartbeat()).suspects, true);
      // A heartbeat reports only suspects of the worker's own handlers.
      const mailer = await TestWorker.start(store);
      deepEqual(await mailer.heartbeat(), { alive: true, suspects: false });
      await store.receive([crashes.event({ id: 'fresh' })]);
      equal((await observer.claimOne()).id, 'fresh');
      equal(await observer.claimSuspect(['mail']), null);
      equal(await observer.claimSuspect([]), null);
      const suspect = (await observer.claimSuspect())!;
      const { id, attempt, crashes: count, raw } = suspect;
      deepEqual([id, attempt, count], [event.id, 1, 1]);
      ok(raw.equals(event.raw));
      equal((await observer.heartbeat()).suspects, false);
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(suspect)).settled, true);
      deepEqual(await attemptsOf(store, event), [
        [1, 'lost', null],
        [1, 'done', null],
      ]);
    },
  },
  {
    title: 'IN-19 nextDueInMs() does not count a suspect, which normal claims do not lease',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      await crashes.addSuspect();
      equal(await crashes.store.nextDueInMs(['book']), null);
    },
  },
  {
    title: 'IN-19 claimSuspect() leases one suspect at a time, in the order of due times',
    needs: 'shared',
    async run(inbox) {
      const { advance } = inbox;
      const crashes = await Crashes.start(inbox);
      const ids: string[] = [];
      for (let n = 0; n < 3; n += 1) {
        ids.push((await crashes.addSuspect()).id);
        await advance(10);
      }
      const { observer } = crashes;
      for (const id of ids) equal((await observer.claimSuspect())?.id, id);
      equal(await observer.claimSuspect(), null);
    },
  },
  {
    title: 'IN-19 concurrent calls of claimSuspect() lease each suspect once',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      const events = Array.from({ length: 10 }, () => crashes.event());
      await store.receive(events);
      await crashes.crash((worker) => worker.claim());
      const workers = [
        crashes.observer,
        await TestWorker.start(store),
        await TestWorker.start(await inbox.another()),
      ];
      const claimed: string[] = [];
      for (let round = 0; round < 20 && claimed.length < 10; round += 1) {
        const suspects = await Promise.all(workers.map((worker) => worker.claimSuspect()));
        for (const suspect of suspects) if (suspect !== null) claimed.push(suspect.id);
      }
      equal(claimed.length, 10);
      equal(new Set(claimed).size, 10);
    },
  },
  {
    title: 'IN-19 a failed suspect is a normal delivery again',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      const event = await crashes.addSuspect();
      const { observer } = crashes;
      const suspect = (await observer.claimSuspect())!;
      await store.fail(suspect, { error: 'no', retryInMs: 0 });
      equal((await observer.heartbeat()).suspects, false);
      const normal = await observer.claimOne();
      deepEqual([normal.crashes, normal.attempt], [0, 2]);
      // The delivery is no suspect now, so the next crash is not counted.
      await store.release(normal);
      await crashes.crash((worker) => worker.claimOne());
      deepEqual(await states(store, event), { book: 'pending 1' });
      equal((await observer.claimSuspect())?.crashes, 1);
    },
  },
  {
    title: 'IN-19 a completed suspect is a normal delivery again, even after a redrive',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      const event = await crashes.addSuspect();
      const { observer } = crashes;
      await store.complete((await observer.claimSuspect())!);
      const selection = select(event.id);
      equal(await store.redrive(selection, REDRIVE_FORCED), 1);
      const again = await observer.claimOne();
      deepEqual([again.crashes, again.attempt], [0, 1]);
    },
  },
  {
    title: 'IN-19 a released suspect stays a suspect',
    needs: 'shared',
    async run(inbox) {
      const { store, advance } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.addSuspect();
      const { observer } = crashes;
      await store.release((await observer.claimSuspect())!, 30_000);
      equal((await observer.claim()).length, 0);
      equal(await observer.claimSuspect(), null);
      await advance(31_000);
      equal((await observer.claim()).length, 0);
      const again = await observer.claimSuspect();
      deepEqual([again?.id, again?.crashes, again?.attempt], [event.id, 1, 1]);
    },
  },
  {
    title: 'IN-16 claimSuspect() leases no suspect whose ordering key is busy',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store, observer } = crashes;
      const event = await crashes.addSuspect({ orderingKey: 'k' });
      await store.receive([crashes.event({ orderingKey: 'k' })]);
      const lease = await observer.claimOne();
      equal(await observer.claimSuspect(), null);
      await store.complete(lease);
      const suspect = await observer.claimSuspect();
      equal(suspect?.id, event.id);
      // While the suspect runs, the other deliveries of the key wait.
      const next = crashes.event({ orderingKey: 'k' });
      await store.receive([next]);
      equal((await observer.claim()).length, 0);
      equal((await store.complete(suspect)).nextDue, true);
      equal((await observer.claimOne()).id, next.id);
    },
  },
  {
    title: 'IN-27 claimSuspect() leases no suspect of a paused handler',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store, observer } = crashes;
      await crashes.addSuspect();
      for (const paused of ['book', '*']) {
        await store.pause(paused, true);
        equal((await observer.heartbeat()).suspects, false);
        equal(await observer.claimSuspect(), null);
        await store.pause(paused, false);
      }
      ok(await observer.claimSuspect());
    },
  },
  {
    title:
      'IN-35 a redriven suspect stays a suspect, and a skipped suspect becomes a normal delivery',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      const event = await crashes.addSuspect();
      const selection = select(event.id);
      equal(await store.redrive(selection, REDRIVE_NOW), 1);
      equal((await crashes.observer.claim()).length, 0);
      equal(await store.skip(selection), 1);
      equal(await crashes.observer.claimSuspect(), null);
      equal((await crashes.observer.heartbeat()).suspects, false);
      equal(await store.redrive(selection, REDRIVE_NOW), 1);
      equal((await crashes.observer.claimOne()).crashes, 0);
    },
  },
  {
    title:
      'IN-19 a poison event reaches its last attempt, because lost attempts of a suspect are counted',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      const event = await crashes.addSuspect();
      deepEqual(await states(store, event), { book: 'pending 0' });
      for (const attempt of [1, 2, 3]) {
        const suspect = await crashes.crash((worker) => worker.claimSuspect());
        equal(suspect?.attempt, attempt);
        equal(suspect?.crashes, attempt);
        deepEqual(await states(store, event), { book: `pending ${attempt}` });
      }
      const last = (await crashes.observer.claimSuspect())!;
      equal(last.attempt, 4);
      await store.fail(last, { error: 'out of attempts', retryInMs: null });
      deepEqual(await states(store, event), { book: 'dead 4' });
      deepEqual(await attemptsOf(store, event), [
        [1, 'lost', null],
        [1, 'lost', null],
        [2, 'lost', null],
        [3, 'lost', null],
        [4, 'failed', 'out of attempts'],
      ]);
    },
  },
  {
    title:
      'IN-19 if a process dies while it runs a suspect, only the attempt of the suspect is counted',
    needs: 'shared',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { store } = crashes;
      const suspect = await crashes.addSuspect();
      const events = Array.from({ length: 5 }, () => crashes.event());
      await store.receive(events);
      await crashes.crash(async (worker) => {
        equal((await worker.claimSuspect())?.id, suspect.id);
        equal((await worker.claim()).length, 5);
      });
      deepEqual(await states(store, suspect), { book: 'pending 1' });
      for (const event of events) deepEqual(await states(store, event), { book: 'pending 0' });
      const counts = new Map<string, number[]>();
      for (let next = await crashes.observer.claimSuspect(); next;) {
        await store.complete(next);
        counts.set(next.id, [next.attempt, next.crashes]);
        next = await crashes.observer.claimSuspect();
      }
      deepEqual(counts.get(suspect.id), [2, 2]);
      for (const { id } of events) deepEqual(counts.get(id), [1, 1]);
    },
  },
];
