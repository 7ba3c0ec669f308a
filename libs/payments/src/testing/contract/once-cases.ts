import { deepEqual, equal, ok } from 'node:assert/strict';
import { idsOf, incoming, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const DAY = 86_400_000;

export const onceCases: readonly InboxContractCase[] = [
  {
    title:
      'IN-02 reports another id of the same transaction as a duplicate, and notes it once on the first',
    async run({ store, another }) {
      const first = incoming({ onceKey: 'tx' });
      const again = incoming({ onceKey: 'tx', raw: Buffer.from('another body') });
      const receipt = { outcome: 'duplicate', id: first.id, claimed: [], pending: false };
      const other = await another();
      await store.receive([first]);
      for (const own of [store, other, store]) deepEqual(await own.receive([again]), [receipt]);
      equal(await store.find('acme', again.id), undefined);
      const found = (await other.find('acme', first.id))!;
      deepEqual(idsOf(found.repeats), [again.id]);
      ok(found.repeats[0]!.receivedAt >= found.receivedAt);
      deepEqual(await states(store, first), { book: 'pending 0' });
      const page = await store.list({ filter: {}, order: 'oldest', limit: 10, after: null });
      deepEqual(
        page.events.map(({ id, repeats }) => [id, repeats]),
        [[first.id, []]],
      );
      // A copy of the first itself is no repeat.
      await store.receive([first]);
      deepEqual(idsOf((await store.find('acme', first.id))!.repeats), [again.id]);
    },
  },
  {
    title:
      'IN-02 stores one of 50 concurrent events of one transaction, and notes the last 20 others',
    async run({ store, another }) {
      const stores = [store, await another()];
      const events = Array.from({ length: 50 }, () => incoming({ onceKey: 'tx' }));
      const receipts = await Promise.all(
        events.map((event, index) => stores[index % 2]!.receive([event])),
      );
      const stored = receipts.flat().filter(({ outcome }) => outcome === 'stored');
      equal(stored.length, 1);
      const { id } = stored[0]!;
      ok(receipts.flat().every((receipt) => receipt.id === id));
      const { repeats } = (await store.find('acme', id))!;
      equal(new Set(idsOf(repeats)).size, 20);
      ok(idsOf(repeats).every((repeat) => repeat !== id));
    },
  },
  {
    title: 'IN-03 knows another id of the same transaction within a batch',
    async run({ store }) {
      const [a, b, c] = [
        incoming({ onceKey: 'tx' }),
        incoming({ onceKey: 'tx' }),
        incoming({ onceKey: 'other' }),
      ];
      deepEqual(
        (await store.receive([a, b, c, b])).map(({ outcome, id }) => [outcome, id]),
        [
          ['stored', a.id],
          ['duplicate', a.id],
          ['stored', c.id],
          ['duplicate', a.id],
        ],
      );
      deepEqual(idsOf((await store.find('acme', a.id))!.repeats), [b.id]);
    },
  },
  {
    title: 'keeps the last 20 repeats of an event, the oldest first',
    async run({ store, advance }) {
      const first = incoming({ onceKey: 'tx' });
      await store.receive([first]);
      const ids: string[] = [];
      for (let n = 0; n < 25; n += 1) {
        const again = incoming({ onceKey: 'tx' });
        await store.receive([again]);
        await advance(10);
        ids.push(again.id);
      }
      const { repeats } = (await store.find('acme', first.id))!;
      deepEqual(idsOf(repeats), ids.slice(5));
      repeats.reduce((a, b) => (ok(a.receivedAt <= b.receivedAt), b));
    },
  },
  {
    title: 'IN-04 handles one transaction id of two companies, and of two types, separately',
    async run({ store }) {
      const events = [
        incoming({ onceKey: 'tx' }),
        incoming({ onceKey: 'tx', company: 'umbrella' }),
        incoming({ onceKey: 'tx', eventType: 'transaction.refunded' }),
        incoming({ onceKey: null, orderingKey: 'tx' }),
        // The id of one event is the key of another.
        incoming({ id: 'tx' }),
      ];
      const outcomes = (await store.receive(events)).map(({ outcome }) => outcome);
      deepEqual(outcomes, Array(5).fill('stored'));
      for (const { company, id } of events) {
        deepEqual((await store.find(company, id))!.repeats, []);
        deepEqual(await states(store, { company, id }), { book: 'pending 0' });
      }
      const again = incoming({ onceKey: 'tx', company: 'umbrella' });
      equal((await store.receive([again]))[0]!.id, events[1]!.id);
      deepEqual((await store.find('acme', events[0]!.id))!.repeats, []);
    },
  },
  {
    title:
      'IN-07 knows another id of a pruned transaction by its tombstone, until the retention ends',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const first = incoming({ onceKey: 'tx' });
      const again = () => incoming({ onceKey: 'tx' });
      const prune = () => store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 100 });
      await store.receive([first]);
      await store.complete(await worker.claimOne());
      await advance(8 * DAY);
      equal(await prune(), 1);
      const copy = again();
      const [receipt] = await store.receive([copy]);
      deepEqual([receipt!.outcome, receipt!.id], ['duplicate', first.id]);
      deepEqual(idsOf((await store.find('acme', first.id))!.repeats), [copy.id]);
      await advance(23 * DAY);
      equal(await prune(), 1);
      equal((await store.receive([again()]))[0]!.outcome, 'stored');
    },
  },
];
