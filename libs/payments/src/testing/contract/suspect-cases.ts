import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { historyOf, NOW, states, TestWorker } from './contract-fixtures.js';
import { Crashes } from './crashes.js';
import type { InboxContractCase } from './contract-case.js';

export const suspectCases: readonly InboxContractCase[] = [
  {
    title: 'IN-19 makes the deliveries of a dead process suspects, which normal claims leave alone',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const { observer } = crashes;
      const event = crashes.event();
      await store.receive([event]);
      equal(await observer.claimSuspect(true), null);
      equal((await observer.heartbeat()).suspects, false);
      await crashes.die((worker) => worker.claimOne());
      equal((await observer.heartbeat()).suspects, true);
      // They are those of the worker's own handlers.
      const mailer = await TestWorker.start(store);
      deepEqual(await mailer.heartbeat(), { alive: true, suspects: false });
      await store.receive([crashes.event({ id: 'fresh' })]);
      equal((await observer.claimOne()).id, 'fresh');
      equal(await observer.claimSuspect(false, ['mail']), null);
      equal(await observer.claimSuspect(false, []), null);
      const suspect = (await observer.claimSuspect(false))!;
      const { id, attempt, crashes: count, raw } = suspect;
      deepEqual([id, attempt, count], [event.id, 1, 1]);
      ok(raw.equals(event.raw));
      equal((await observer.heartbeat()).suspects, false);
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await store.complete(suspect)).settled, true);
      deepEqual(await historyOf(store, event), [
        [1, 'lost', null],
        [1, 'done', null],
      ]);
    },
  },
  {
    title: 'IN-19 leases one suspect at a time, the longest due first, to one worker',
    async run(inbox) {
      const { advance } = inbox;
      const crashes = await Crashes.start(inbox);
      const ids: string[] = [];
      for (let n = 0; n < 3; n += 1) {
        ids.push((await crashes.suspect()).id);
        await advance(10);
      }
      const { observer } = crashes;
      for (const id of ids) equal((await observer.claimSuspect(false))?.id, id);
      equal(await observer.claimSuspect(false), null);
    },
  },
  {
    title: 'IN-19 leases each suspect once to several workers',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const events = Array.from({ length: 10 }, () => crashes.event());
      await store.receive(events);
      await crashes.die((worker) => worker.claim());
      const workers = [
        crashes.observer,
        await TestWorker.start(store),
        await TestWorker.start(await inbox.another()),
      ];
      const claimed: string[] = [];
      for (let round = 0; round < 20 && claimed.length < 10; round += 1) {
        const suspects = await Promise.all(workers.map((worker) => worker.claimSuspect(false)));
        for (const suspect of suspects) if (suspect !== null) claimed.push(suspect.id);
      }
      equal(claimed.length, 10);
      equal(new Set(claimed).size, 10);
    },
  },
  {
    title: 'IN-19 makes a suspect a normal delivery again when an attempt of it is settled',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.suspect();
      const { observer } = crashes;
      const suspect = (await observer.claimSuspect(true))!;
      await store.fail(suspect, { error: 'no', retryInMs: 0 });
      equal((await observer.heartbeat()).suspects, false);
      const normal = await observer.claimOne();
      deepEqual([normal.crashes, normal.attempt], [0, 2]);
      // It is not marked as running alone any more: a crash is not charged.
      await store.release(normal);
      await crashes.die((worker) => worker.claimOne());
      deepEqual(await states(store, event), { book: 'pending 1' });
      equal((await observer.claimSuspect(false))?.crashes, 1);
    },
  },
  {
    title: 'IN-19 makes a suspect a normal delivery again when it is done, also for a redrive',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.suspect();
      const { observer } = crashes;
      await store.complete((await observer.claimSuspect(false))!);
      const selection = [{ company: 'acme', id: event.id, handlers: ['book'] }];
      equal(await store.redrive(selection, { ...NOW, force: true }), 1);
      const again = await observer.claimOne();
      deepEqual([again.crashes, again.attempt], [0, 1]);
    },
  },
  {
    title: 'IN-19 leaves a suspect that is released a suspect',
    async run(inbox) {
      const { store, advance } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.suspect();
      const { observer } = crashes;
      await store.release((await observer.claimSuspect(false))!, 30_000);
      equal((await observer.claim()).length, 0);
      equal(await observer.claimSuspect(false), null);
      await advance(31_000);
      equal((await observer.claim()).length, 0);
      const again = await observer.claimSuspect(false);
      deepEqual([again?.id, again?.crashes, again?.attempt], [event.id, 1, 1]);
    },
  },
  {
    title: 'IN-16 leases no suspect whose ordering key is running',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const { observer } = crashes;
      const event = await crashes.suspect({ orderingKey: 'k' });
      await store.receive([crashes.event({ orderingKey: 'k' })]);
      const lease = await observer.claimOne();
      equal(await observer.claimSuspect(true), null);
      await store.complete(lease);
      const suspect = await observer.claimSuspect(true);
      equal(suspect?.id, event.id);
      // And the other way round.
      const next = crashes.event({ orderingKey: 'k' });
      await store.receive([next]);
      equal((await observer.claim()).length, 0);
      equal((await store.complete(suspect)).nextDue, true);
      equal((await observer.claimOne()).id, next.id);
    },
  },
  {
    title: 'IN-27 leases no suspect of a paused handler',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const { observer } = crashes;
      await crashes.suspect();
      for (const paused of ['book', '*']) {
        await store.pause(paused, true);
        equal((await observer.heartbeat()).suspects, false);
        equal(await observer.claimSuspect(true), null);
        await store.pause(paused, false);
      }
      ok(await observer.claimSuspect(true));
    },
  },
  {
    title: 'IN-35 keeps a redriven suspect a suspect, and makes a skipped one a normal delivery',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.suspect();
      const selection = [{ company: 'acme', id: event.id, handlers: ['book'] }];
      equal(await store.redrive(selection, NOW), 1);
      // A redrive does not make it harmless.
      equal((await crashes.observer.claim()).length, 0);
      equal(await store.skip(selection), 1);
      equal(await crashes.observer.claimSuspect(true), null);
      equal((await crashes.observer.heartbeat()).suspects, false);
      equal(await store.redrive(selection, NOW), 1);
      equal((await crashes.observer.claimOne()).crashes, 0);
    },
  },
  {
    title: 'frees the suspect of a process that dies before it has registered again',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.suspect();
      const worker = randomUUID();
      await store.claimSuspect({ worker, handlers: ['book'], alone: false });
      await crashes.observer.heartbeat();
      deepEqual(await states(store, event), { book: 'pending 0' });
      ok((await crashes.observer.claimSuspect(true))!.crashes >= 1);
    },
  },
];
