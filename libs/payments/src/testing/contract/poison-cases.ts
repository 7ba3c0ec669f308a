import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ClaimedDelivery } from '../../inbox/store/inbox-store.js';
import { historyOf, states, TestWorker } from './contract-fixtures.js';
import { Crashes } from './crashes.js';
import type { InboxContractCase } from './contract-case.js';

export const poisonCases: readonly InboxContractCase[] = [
  {
    title: 'IN-19 leases a suspect of two crashes only alone',
    async run(inbox) {
      const crashes = await Crashes.start(inbox);
      const { observer } = crashes;
      const event = await crashes.suspect();
      await crashes.die((worker) => worker.claimSuspect(false));
      equal((await observer.heartbeat()).suspects, true);
      equal(await observer.claimSuspect(false), null);
      const suspect = await observer.claimSuspect(true);
      deepEqual([suspect?.id, suspect?.crashes, suspect?.attempt], [event.id, 2, 1]);
    },
  },
  {
    title:
      'IN-19 charges only the attempts that ran alone, so that a poison event reaches its last attempt',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const event = await crashes.suspect();
      deepEqual(await states(store, event), { book: 'pending 0' });
      await crashes.die((worker) => worker.claimSuspect(false));
      deepEqual(await states(store, event), { book: 'pending 0' });
      for (const attempt of [1, 2, 3]) {
        const suspect = await crashes.die((worker) => worker.claimSuspect(true));
        equal(suspect?.attempt, attempt);
        equal(suspect?.crashes, attempt + 1);
        deepEqual(await states(store, event), { book: `pending ${attempt}` });
      }
      const last = (await crashes.observer.claimSuspect(true))!;
      equal(last.attempt, 4);
      await store.fail(last, { error: 'given up', retryInMs: null });
      deepEqual(await states(store, event), { book: 'dead 4' });
      deepEqual(await historyOf(store, event), [
        [1, 'lost', null],
        [1, 'lost', null],
        [1, 'lost', null],
        [2, 'lost', null],
        [3, 'lost', null],
        [4, 'failed', 'given up'],
      ]);
    },
  },
  {
    title: 'IN-19 charges no innocent delivery for the crashes next to it',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      const events = Array.from({ length: 5 }, () => crashes.event());
      await store.receive(events);
      await crashes.die((worker) => worker.claim());
      await crashes.die((worker) => worker.claimSuspect(false));
      for (const event of events) deepEqual(await states(store, event), { book: 'pending 0' });
      const { observer } = crashes;
      const done: ClaimedDelivery[] = [];
      for (let next = await observer.claimSuspect(false); next;) {
        await observer.store.complete(next);
        done.push(next);
        next = await observer.claimSuspect(false);
      }
      // The one with two crashes waits for a process that runs nothing else.
      equal(done.length, 4);
      ok(done.every(({ attempt, crashes: count }) => attempt === 1 && count === 1));
      equal((await observer.claimSuspect(true))?.crashes, 2);
    },
  },
  {
    title: 'IN-19 keeps a suspect apart after the worker that ran it retired',
    async run(inbox) {
      const { store } = inbox;
      const crashes = await Crashes.start(inbox);
      await crashes.suspect();
      const retiring = await TestWorker.start(store);
      equal((await retiring.claimSuspect(true))?.crashes, 1);
      await store.retire(retiring.id, 0);
      const { observer } = crashes;
      equal((await observer.heartbeat()).suspects, true);
      deepEqual(await observer.claim(), []);
      const again = await observer.claimSuspect(true);
      deepEqual([again?.attempt, again?.crashes], [1, 1]);
    },
  },
];
