import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import type {
  InboxStore,
  IncomingEvent,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  DAY_MS,
  REDRIVE_NOW,
  TestWorker,
  idsOf,
  incoming,
  listAll,
  pruneAll,
  select,
  states,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

const RECEIVE_LIMIT_MS = 20_000;
/** Text with characters that databases treat specially. */
const HEADERS = {
  'user-agent': 'service-Webhook/1.0',
  'x-request-id': 'a "quoted" \\ {value} \u0000 \ud800 \ue0000041 é 支払い',
};

/** An event that was too old when it was received. */
function stale(id: string): IncomingEvent {
  return incoming({ id, handlers: [], stale: true });
}

/** The number of the events in a state, as `stats()` counts them, and their ids, as `list()` returns them. */
async function inState(store: InboxStore, state: 'unhandled' | 'stale'): Promise<string> {
  const ids = idsOf(await listAll(store, { state })).toSorted();
  return `${(await store.stats())[state].count}: ${ids.join()}`;
}

/** The rows that `receive` stores, and the rejection of calls by a store that is down or closed. */
export const receiveCases: readonly InboxContractCase[] = [
  {
    title: 'IN-01 a stored event has exactly the bytes, key, type and time that were received',
    async run({ store, another }) {
      const raw = Buffer.from([...Array(256).keys(), 0, 0xff, 0xfe, 0x0a]);
      const event = incoming({ raw, orderingKey: 'key', eventType: 'odd.type' });
      deepEqual(await store.receive([event]), [
        { outcome: 'stored', id: event.id, claimed: [], pending: true, fulfilled: [] },
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
          frames: null,
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
    title:
      'IN-01 an ordering key may have any length and content, even if events are handled once per transaction',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      // A repeated letter would be compressed, and then be shorter than an index entry may be.
      const long = randomBytes(50_000).toString('hex');
      const keys = [`${long}a`, `${long}b`, 'a\u0000b', '', ' ', "'; drop table", '支払い\ud800'];
      const events = keys.map((key) => incoming({ orderingKey: key, oncePerTransaction: true }));
      const receipts = await store.receive(events);
      ok(receipts.every(({ outcome }) => outcome === 'stored'));
      const again = await store.receive(keys.map((key) => incoming({ orderingKey: key })));
      ok(again.every(({ outcome }) => outcome === 'stored'));
      equal((await worker.claim()).length, keys.length);
      const copies = await store.receive(
        keys.map((key) => incoming({ orderingKey: key, oncePerTransaction: true })),
      );
      deepEqual(
        copies.map(({ outcome, id }) => [outcome, id]),
        events.map(({ id }) => ['duplicate', id]),
      );
    },
  },
  {
    title: 'IN-08 receive() rejects within 20 seconds if the database is down',
    needs: 'breakable',
    async run({ store, breakDown }) {
      await breakDown!();
      const begun = performance.now();
      await rejects(store.receive([incoming()]));
      // The sender waits 30 seconds for the response.
      ok(performance.now() - begun < RECEIVE_LIMIT_MS);
    },
  },
  {
    title: 'a closed store rejects all calls',
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
  {
    title: 'the headers of the first copy are stored, and the headers of later copies are not',
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
    title: 'SE-09 a stale event is stored without deliveries and listed as stale, not as unhandled',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([stale('old'), incoming({ id: 'nobody', handlers: [] }), incoming()]);
      equal((await store.find('acme', 'old'))?.stale, true);
      equal((await store.find('acme', 'nobody'))?.stale, false);
      deepEqual(await states(store, { id: 'old' }), {});
      equal(await inState(store, 'stale'), '1: old');
      equal(await inState(store, 'unhandled'), '1: nobody');
      deepEqual(
        (await store.stats()).deliveries.map(({ handler, count }) => [handler, count]),
        [['book', 1]],
      );
      equal((await worker.claim()).length, 1);
      equal((await store.receive([stale('old')]))[0]?.outcome, 'duplicate');
    },
  },
  {
    title: 'SE-09 a redriven stale event is not stale any more',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([stale('old'), stale('older')]);
      const selection = select('old');
      equal(await store.redrive(selection, REDRIVE_NOW), 1);
      equal(await inState(store, 'stale'), '1: older');
      equal(await inState(store, 'unhandled'), '0: ');
      ok((await store.complete(await worker.claimOne())).settled);
      deepEqual(await states(store, { id: 'old' }), { book: 'done 1' });
      equal((await store.find('acme', 'old'))?.stale, false);
    },
  },
  {
    title: 'SE-09 a stale event is pruned like a finished event and is then not counted',
    async run({ store, advance }) {
      await store.receive([stale('old')]);
      await advance(8 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 30 * DAY_MS);
      equal(await inState(store, 'stale'), '0: ');
      equal((await store.find('acme', 'old'))?.raw, null);
      equal((await store.receive([stale('old')]))[0]?.outcome, 'duplicate');
      await advance(23 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 30 * DAY_MS);
      equal(await store.find('acme', 'old'), undefined);
      await store.receive([stale('old')]);
      await advance(31 * DAY_MS);
      await pruneAll(store, 7 * DAY_MS, 30 * DAY_MS);
      equal(await inState(store, 'stale'), '0: ');
      equal(await store.find('acme', 'old'), undefined);
    },
  },
];
