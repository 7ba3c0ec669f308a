import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { claimOne, incoming, states } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

const DAY = 86_400_000;
const BOUND_MS = 20_000;

export const receiveCases: readonly InboxContractCase[] = [
  {
    title: '1: gives back the raw bytes it received, whatever they are',
    async run({ store }) {
      const raw = Buffer.from([...Array(256).keys(), 0, 0xff, 0xfe, 0x0a]);
      const event = incoming({ raw, orderingKey: 'key', eventType: 'odd.type' });
      deepEqual(await store.receive([event]), [{ outcome: 'stored', id: event.id }]);
      const found = await store.find('acme', event.id);
      ok(found);
      ok(found.raw?.equals(raw));
      equal(found.eventType, 'odd.type');
      equal(found.orderingKey, 'key');
      equal(found.occurredAt.toISOString(), '2025-11-20T10:00:00.000Z');
      deepEqual(
        found.deliveries.map(({ handler, state, attempts, lastError }) => ({
          handler,
          state,
          attempts,
          lastError,
        })),
        [{ handler: 'book', state: 'pending', attempts: 0, lastError: null }],
      );
      ok((await claimOne(store)).raw.equals(raw));
      equal(await store.find('acme', 'no such event'), undefined);
    },
  },
  {
    title: '2: stores one of 50 copies that are received at once and knows 49 as duplicates',
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
    title: '3: stores one of several copies in one batch, and the rest of the batch',
    async run({ store }) {
      const [a, b] = [incoming(), incoming()];
      const receipts = await store.receive([a, a, b, a]);
      deepEqual(
        receipts.map(({ outcome }) => outcome),
        ['stored', 'duplicate', 'stored', 'duplicate'],
      );
      deepEqual(await states(store, b), { book: 'pending 0' });
    },
  },
  {
    title: '3: flags another body of an id in one batch, and stores the first and the rest',
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
    title: '4: keeps the same id of two companies as two events',
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
    title: '5: flags the same id with another body as a conflict and keeps the original',
    async run({ store }) {
      const event = incoming();
      const other = { ...event, raw: Buffer.from('another body'), dedupeKey: 'another key' };
      await store.receive([event]);
      deepEqual(await store.receive([other]), [{ outcome: 'conflict', id: event.id }]);
      deepEqual(await store.receive([event]), [{ outcome: 'duplicate', id: event.id }]);
      ok((await store.find('acme', event.id))?.raw?.equals(event.raw));
      deepEqual(await states(store, event), { book: 'pending 0' });
    },
  },
  {
    title: 'knows an event under another id by its de-duplication key, and names the original',
    async run({ store }) {
      const event = incoming({ dedupeKey: 'one transaction' });
      const again = incoming({ dedupeKey: 'one transaction' });
      await store.receive([event]);
      deepEqual(await store.receive([again]), [{ outcome: 'duplicate', id: event.id }]);
      equal(await store.find('acme', again.id), undefined);
    },
  },
  {
    title: '6: adds no delivery for a duplicate while processing, done or dead',
    async run({ store }) {
      const event = incoming({ handlers: ['book', 'mail'] });
      const copy = async () => (await store.receive([event]))[0]?.outcome;
      await store.receive([event]);
      const booked = await claimOne(store, 'book');
      equal(await copy(), 'duplicate');
      await store.complete(booked);
      await store.fail(await claimOne(store, 'mail'), { error: 'no', retryInMs: null });
      equal(await copy(), 'duplicate');
      deepEqual(await states(store, event), { book: 'done 1', mail: 'dead 1' });
      equal((await store.claim({ handlers: ['book', 'mail'], limit: 9, leaseMs: 1000 })).length, 0);
    },
  },
  {
    title: '7: knows a duplicate after pruning by its tombstone, until the retention ends',
    async run({ store, advance }) {
      const event = incoming();
      const prune = () => store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 100 });
      await store.receive([event]);
      await store.complete(await claimOne(store));
      equal(await prune(), 0);
      await advance(8 * DAY);
      equal(await prune(), 1);
      equal(await prune(), 0);
      const tombstone = await store.find('acme', event.id);
      equal(tombstone?.raw, null);
      deepEqual(tombstone?.deliveries, []);
      equal((await store.receive([event]))[0]?.outcome, 'duplicate');
      equal((await store.receive([{ ...event, raw: Buffer.from('x') }]))[0]?.outcome, 'conflict');
      await advance(23 * DAY);
      equal(await prune(), 1);
      equal((await store.receive([event]))[0]?.outcome, 'stored');
      deepEqual(await states(store, event), { book: 'pending 0' });
    },
  },
  {
    title: '7: never prunes an event that is pending, running or dead, and prunes in batches',
    async run({ store, advance }) {
      const [pending, dead, done, unhandled] = [
        incoming({ handlers: ['later'] }),
        incoming(),
        incoming(),
        incoming({ handlers: [] }),
      ];
      await store.receive([dead]);
      await store.fail(await claimOne(store), { error: 'no', retryInMs: null });
      await store.receive([done]);
      await store.complete(await claimOne(store));
      await store.receive([pending, unhandled]);
      await advance(40 * DAY);
      const prune = () => store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 60 * DAY, limit: 1 });
      equal(await prune(), 1);
      equal(await prune(), 1);
      equal(await prune(), 0);
      deepEqual(await states(store, pending), { later: 'pending 0' });
      deepEqual(await states(store, dead), { book: 'dead 1' });
      equal((await store.find('acme', done.id))?.raw, null);
      equal((await store.find('acme', unhandled.id))?.raw, null);
    },
  },
  {
    title: '8: rejects a receive within a bounded time when the store is down',
    needs: 'breakable',
    async run({ store, breakDown }) {
      await breakDown!();
      const begun = performance.now();
      await rejects(store.receive([incoming()]));
      // The sender waits for 30 seconds; its answer is to be well before that.
      ok(performance.now() - begun < BOUND_MS);
    },
  },
  {
    title: '26: prunes in batches while it receives and claims, none of which is refused',
    async run({ store, advance }) {
      const old = Array.from({ length: 300 }, () => incoming({ handlers: [] }));
      await store.receive(old);
      await advance(8 * DAY);
      let touched = 0;
      const pruning = (async () => {
        for (;;) {
          const batch = await store.prune({ bodiesMs: 7 * DAY, tombstonesMs: 30 * DAY, limit: 50 });
          ok(batch <= 50);
          touched += batch;
          if (batch < 50) return;
        }
      })();
      let received = 0;
      let claimed = 0;
      const receiving = (async () => {
        for (; received < 20; received += 1) {
          equal((await store.receive([incoming()]))[0]?.outcome, 'stored');
          claimed += (await store.claim({ handlers: ['book'], limit: 9, leaseMs: 60_000 })).length;
        }
      })();
      await Promise.all([pruning, receiving]);
      equal(touched, 300);
      equal(claimed, 20);
      equal((await store.receive([old[0]!]))[0]?.outcome, 'duplicate');
    },
  },
];
