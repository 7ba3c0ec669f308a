import { deepEqual, equal, ok } from 'node:assert/strict';
import { incoming, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

export const pauseCases: readonly InboxContractCase[] = [
  {
    title: 'IN-27 pauses and resumes a handler, in every process',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      await store.receive([incoming({ handlers: ['book', 'mail'] })]);
      await store.pause('book', true);
      await store.pause('book', true);
      deepEqual((await other.store.stats()).paused, ['book']);
      deepEqual(
        (await other.claim(['book', 'mail'])).map(({ handler }) => handler),
        ['mail'],
      );
      equal((await worker.claim()).length, 0);
      equal(await other.store.nextDueInMs(['book', 'mail']), null);
      await other.store.pause('book', false);
      equal((await worker.claim()).length, 1);
      deepEqual((await store.stats()).paused, []);
    },
  },
  {
    title: 'IN-27 pauses and resumes the whole inbox, and still receives',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      await store.pause('*', true);
      await store.pause('mail', true);
      const receipts = await store.receive([incoming({ handlers: ['book', 'mail'] })]);
      equal(receipts[0]?.outcome, 'stored');
      deepEqual((await other.store.stats()).paused.toSorted(), ['*', 'mail']);
      equal((await worker.claim()).length, 0);
      equal((await other.claim(['book', 'mail'])).length, 0);
      await store.pause('*', false);
      deepEqual(
        (await other.claim(['book', 'mail'])).map(({ handler }) => handler),
        ['book'],
      );
    },
  },
  {
    title: 'IN-27 lets what runs finish while its handler is paused',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming(), incoming()]);
      const [a, b] = await worker.claim();
      await store.pause('book', true);
      equal((await store.complete(a!)).settled, true);
      equal((await store.fail(b!, { error: 'no', retryInMs: 0 })).settled, true);
      equal((await worker.claim()).length, 0);
      await store.pause('book', false);
      ok(await worker.claimOne());
    },
  },
];
