import { deepEqual, equal, ok } from 'node:assert/strict';
import { idsOf, incoming, listAll, outcomesOf, states, TestWorker } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** Which events are copies of others: by their id, and once per transaction. */
export const duplicateCases: readonly InboxContractCase[] = [
  {
    title: 'IN-02 of 50 concurrent copies, one is stored and 49 are duplicates',
    async run({ store, another }) {
      const stores = [store, await another()];
      const event = incoming();
      const receipts = await Promise.all(
        Array.from({ length: 50 }, (_, index) => stores[index % 2]!.receive([event])),
      );
      const outcomes = receipts.flat().map(({ outcome }) => outcome);
      equal(outcomes.filter((outcome) => outcome === 'stored').length, 1);
      equal(outcomes.filter((outcome) => outcome === 'duplicate').length, 49);
      deepEqual(await states(store, event), { book: 'pending 0' });
    },
  },
  {
    title: 'IN-03 a batch with copies stores the first copy and all other events',
    async run({ store }) {
      const [a, b] = [incoming(), incoming()];
      const receipts = await store.receive([a, a, b, a]);
      deepEqual(
        receipts.map(({ outcome, id, pending }) => [outcome, id, pending]),
        [
          ['stored', a.id, true],
          ['duplicate', a.id, false],
          ['stored', b.id, true],
          ['duplicate', a.id, false],
        ],
      );
      deepEqual(await states(store, b), { book: 'pending 0' });
    },
  },
  {
    title: 'IN-03 a copy with another body in the same batch is a conflict',
    async run({ store }) {
      const [a, b] = [incoming(), incoming()];
      const receipts = await store.receive([a, { ...a, raw: Buffer.from('another body') }, b]);
      deepEqual(
        receipts.map(({ outcome, id }) => [outcome, id]),
        [
          ['stored', a.id],
          ['conflict', a.id],
          ['stored', b.id],
        ],
      );
      ok((await store.find('acme', a.id))?.raw?.equals(a.raw));
    },
  },
  {
    title: 'IN-04 events of two companies may have the same id',
    async run({ store }) {
      const a = incoming({ id: 'same', raw: Buffer.from('a') });
      const b = incoming({ id: 'same', raw: Buffer.from('b'), company: 'umbrella' });
      const receipts = await store.receive([a, b]);
      deepEqual(outcomesOf(receipts), ['stored', 'stored']);
      equal((await store.find('acme', 'same'))?.raw?.toString(), 'a');
      equal((await store.find('umbrella', 'same'))?.raw?.toString(), 'b');
    },
  },
  {
    title: 'IN-05 a copy with another body is a conflict, and the original stays unchanged',
    async run({ store }) {
      const event = incoming();
      const other = {
        ...event,
        raw: Buffer.from('another body'),
        orderingKey: 'another key',
        oncePerTransaction: true,
      };
      const receipt = { id: event.id, claimed: [], pending: false, fulfilled: [] };
      await store.receive([event]);
      deepEqual(await store.receive([other]), [{ ...receipt, outcome: 'conflict' }]);
      deepEqual(await store.receive([event]), [{ ...receipt, outcome: 'duplicate' }]);
      const found = (await store.find('acme', event.id))!;
      ok(found.raw?.equals(event.raw));
      deepEqual(found.repeats, []);
      deepEqual(await states(store, event), { book: 'pending 0' });
    },
  },
  {
    title: 'IN-06 a duplicate of a pending, running, done or dead event adds no delivery',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ handlers: ['book', 'mail'] });
      const assign = { workerId: worker.id, handlers: ['book', 'mail', 'print'] };
      const copy = async () => {
        const again = { ...event, handlers: ['book', 'mail', 'print'], assign };
        const [receipt] = await store.receive([again]);
        deepEqual(receipt, {
          outcome: 'duplicate',
          id: event.id,
          claimed: [],
          pending: false,
          fulfilled: [],
        });
      };
      await store.receive([event]);
      await copy();
      const booked = await worker.claimOne('book');
      await copy();
      await store.complete(booked);
      await copy();
      await store.fail(await worker.claimOne('mail'), { error: 'no', retryInMs: null });
      await copy();
      deepEqual(await states(store, event), { book: 'done 1', mail: 'dead 1' });
      equal((await worker.claim(['book', 'mail', 'print'])).length, 0);
    },
  },
  {
    title:
      'IN-02 a second event of a transaction is a duplicate, and is stored as a repeat of the first event',
    async run({ store, another }) {
      const first = incoming({ orderingKey: 'tx', oncePerTransaction: true });
      const again = incoming({
        orderingKey: 'tx',
        oncePerTransaction: true,
        raw: Buffer.from('another body'),
      });
      const receipt = {
        outcome: 'duplicate',
        id: first.id,
        claimed: [],
        pending: false,
        fulfilled: [],
      };
      const other = await another();
      await store.receive([first]);
      for (const own of [store, other, store]) deepEqual(await own.receive([again]), [receipt]);
      equal(await store.find('acme', again.id), undefined);
      const found = (await other.find('acme', first.id))!;
      deepEqual(idsOf(found.repeats), [again.id]);
      ok(found.repeats[0]!.receivedAt >= found.receivedAt);
      deepEqual(await states(store, first), { book: 'pending 0' });
      deepEqual(
        (await listAll(store)).map(({ id, repeats }) => [id, repeats]),
        [[first.id, []]],
      );
      // A copy of the first event is not a repeat.
      await store.receive([first]);
      deepEqual(idsOf((await store.find('acme', first.id))!.repeats), [again.id]);
    },
  },
  {
    title: 'IN-02 of 50 concurrent events of one transaction, one is stored, with 20 repeats',
    async run({ store, another }) {
      const stores = [store, await another()];
      const events = Array.from({ length: 50 }, () =>
        incoming({ orderingKey: 'tx', oncePerTransaction: true }),
      );
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
    title: 'IN-03 a second event of a transaction in the same batch is a duplicate',
    async run({ store }) {
      const [a, b, c] = [
        incoming({ orderingKey: 'tx', oncePerTransaction: true }),
        incoming({ orderingKey: 'tx', oncePerTransaction: true }),
        incoming({ orderingKey: 'other', oncePerTransaction: true }),
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
    title: 'an event keeps its last 20 repeats, the oldest first',
    async run({ store, advance }) {
      const first = incoming({ orderingKey: 'tx', oncePerTransaction: true });
      await store.receive([first]);
      const ids: string[] = [];
      for (let n = 0; n < 25; n += 1) {
        const again = incoming({ orderingKey: 'tx', oncePerTransaction: true });
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
    title:
      'IN-04 events with one transaction id but different companies or types are not duplicates',
    async run({ store }) {
      const events = [
        incoming({ orderingKey: 'tx', oncePerTransaction: true }),
        incoming({ orderingKey: 'tx', oncePerTransaction: true, company: 'umbrella' }),
        incoming({
          orderingKey: 'tx',
          oncePerTransaction: true,
          eventType: 'transaction.refunded',
        }),
        incoming({ orderingKey: 'tx' }),
        // An event whose id is the transaction of others.
        incoming({ id: 'tx' }),
      ];
      const outcomes = (await store.receive(events)).map(({ outcome }) => outcome);
      deepEqual(outcomes, Array(5).fill('stored'));
      for (const { company, id } of events) {
        deepEqual((await store.find(company, id))!.repeats, []);
        deepEqual(await states(store, { company, id }), { book: 'pending 0' });
      }
      const again = incoming({ orderingKey: 'tx', oncePerTransaction: true, company: 'umbrella' });
      equal((await store.receive([again]))[0]!.id, events[1]!.id);
      deepEqual((await store.find('acme', events[0]!.id))!.repeats, []);
    },
  },
];
