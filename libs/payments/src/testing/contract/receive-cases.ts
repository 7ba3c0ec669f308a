import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { incoming, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

const BOUND_MS = 20_000;

export const receiveCases: readonly InboxContractCase[] = [
  {
    title: 'IN-01 returns the raw bytes that it received, whatever they are',
    async run({ store, another }) {
      const raw = Buffer.from([...Array(256).keys(), 0, 0xff, 0xfe, 0x0a]);
      const event = incoming({ raw, orderingKey: 'key', eventType: 'odd.type' });
      deepEqual(await store.receive([event]), [
        { outcome: 'stored', id: event.id, claimed: [], pending: true },
      ]);
      const other = await another();
      const found = await other.find('acme', event.id);
      ok(found);
      ok(found.raw?.equals(raw));
      equal(found.eventType, 'odd.type');
      equal(found.orderingKey, 'key');
      equal(found.occurredAt.toISOString(), '2025-11-20T10:00:00.000Z');
      const [delivery] = found.deliveries;
      ok(delivery!.dueAt instanceof Date);
      deepEqual(
        { ...delivery, dueAt: null },
        {
          handler: 'book',
          state: 'pending',
          attempts: 0,
          lastError: null,
          dueAt: null,
          finishedAt: null,
          history: [],
        },
      );
      const worker = await TestWorker.start(store);
      ok((await worker.claimOne()).raw.equals(raw));
      equal(await store.find('acme', 'no such event'), undefined);
      equal(await store.find('umbrella', event.id), undefined);
    },
  },
  {
    title: 'IN-02 stores one of 50 concurrent copies and reports 49 duplicates',
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
    title: 'IN-03 stores the first of several copies in a batch, and the rest of the batch',
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
    title: 'IN-03 reports another body of an id within a batch as a conflict',
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
    title: 'IN-04 stores the same id of two companies as two events',
    async run({ store }) {
      const a = incoming({ id: 'same', raw: Buffer.from('a') });
      const b = incoming({ id: 'same', raw: Buffer.from('b'), company: 'umbrella' });
      const receipts = await store.receive([a, b]);
      deepEqual(
        receipts.map(({ outcome }) => outcome),
        ['stored', 'stored'],
      );
      equal((await store.find('acme', 'same'))?.raw?.toString(), 'a');
      equal((await store.find('umbrella', 'same'))?.raw?.toString(), 'b');
    },
  },
  {
    title: 'IN-05 reports the same id with another body as a conflict and keeps the original',
    async run({ store }) {
      const event = incoming();
      const other = { ...event, raw: Buffer.from('another body'), onceKey: 'another key' };
      const receipt = { id: event.id, claimed: [], pending: false };
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
    title:
      'IN-06 adds no delivery for a duplicate while the event is pending, running, done or dead',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ handlers: ['book', 'mail'] });
      const assign = { worker: worker.id, handlers: ['book', 'mail', 'print'] };
      const copy = async () => {
        const again = { ...event, handlers: ['book', 'mail', 'print'], assign };
        const [receipt] = await store.receive([again]);
        deepEqual(receipt, { outcome: 'duplicate', id: event.id, claimed: [], pending: false });
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
    title: 'IN-08 rejects a receive within a bounded time if the store is down',
    needs: 'breakable',
    async run({ store, breakDown }) {
      await breakDown!();
      const begun = performance.now();
      await rejects(store.receive([incoming()]));
      // The sender waits for 30 seconds. Its answer must come well before that.
      ok(performance.now() - begun < BOUND_MS);
    },
  },
  {
    title: 'IN-01 accepts ordering keys and once keys of any length and content',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const long = 'x'.repeat(100_000);
      const keys = [`${long}a`, `${long}b`, 'a\u0000b', '', ' ', "'; drop table", '支払い\ud800'];
      const events = keys.map((key) => incoming({ orderingKey: key, onceKey: key }));
      const receipts = await store.receive(events);
      ok(receipts.every(({ outcome }) => outcome === 'stored'));
      const again = await store.receive(keys.map((key) => incoming({ orderingKey: key })));
      ok(again.every(({ outcome }) => outcome === 'stored'));
      equal((await worker.claim()).length, keys.length);
      const copies = await store.receive(keys.map((key) => incoming({ onceKey: key })));
      deepEqual(
        copies.map(({ outcome, id }) => [outcome, id]),
        events.map(({ id }) => ['duplicate', id]),
      );
    },
  },
  {
    title: 'rejects calls after it was closed',
    needs: 'shared',
    async run({ another }) {
      const closed = await another();
      const worker = await TestWorker.start(closed);
      await closed.close();
      await rejects(closed.receive([incoming()]));
      await rejects(worker.heartbeat());
      await rejects(closed.find('acme', 'a'));
    },
  },
];
