import { deepEqual, equal } from 'node:assert/strict';
import { incoming, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const HEADERS = {
  'user-agent': 'service-Webhook/1.0',
  'x-request-id': 'a "quoted" \\ {value} \u0000 \ud800 \ue0000041 é 支払い',
};

export const headersCases: readonly InboxContractCase[] = [
  {
    title: 'keeps the headers of the first copy of an event, and not those of others',
    async run({ store, another }) {
      const event = incoming({ headers: HEADERS });
      const bare = incoming();
      await store.receive([event, bare]);
      await store.receive([{ ...event, headers: { 'user-agent': 'another' } }]);
      const other = await another();
      deepEqual((await other.find('acme', event.id))?.headers, HEADERS);
      deepEqual((await other.find('acme', bare.id))?.headers, {});
    },
  },
  {
    title: 'deletes headers and histories together with the body',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ headers: HEADERS });
      await store.receive([event]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 0 });
      await store.complete(await worker.claimOne());
      await advance(2000);
      equal(await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 }), 1);
      const tombstone = (await store.find('acme', event.id))!;
      equal(tombstone.raw, null);
      deepEqual(tombstone.headers, {});
      deepEqual(tombstone.deliveries, []);
    },
  },
];
