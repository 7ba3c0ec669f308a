import { deepEqual, equal } from 'node:assert/strict';
import type { EventFilter, InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming, TestWorker } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** The ids of the events that a search finds, sorted. */
async function found(store: InboxStore, search: string, filter: EventFilter = {}) {
  const page = await store.list({
    filter: { ...filter, search },
    order: 'newest',
    limit: 100,
    after: null,
  });
  return page.events.map(({ id }) => id).toSorted();
}

/** Stores events whose only delivery is dead, with this error. */
async function fail(
  store: InboxStore,
  error: string,
  ids: readonly string[],
  company = 'acme',
): Promise<void> {
  const worker = await TestWorker.start(store);
  for (const id of ids) {
    await store.receive([incoming({ id, company })]);
    await store.fail(await worker.claimOne(), { error, retryInMs: null });
  }
}

/** Searches, summaries and failures. */
export const searchCases: readonly InboxContractCase[] = [
  {
    title: 'an event keeps its summary until it becomes a tombstone',
    async run({ store, advance }) {
      const summary = { reference: 'order \u{1F6D2} 7', amount: '350.00', currency: 'KES' };
      const event = incoming({ summary, handlers: [] });
      await store.receive([event, incoming({ id: 'none' })]);
      const [listed] = (
        await store.list({ filter: { ids: [event.id] }, order: 'newest', limit: 1, after: null })
      ).events;
      for (const one of [listed!, (await store.find('acme', event.id))!]) {
        const { reference, amount, currency } = one;
        deepEqual({ reference, amount, currency }, summary);
      }
      equal((await store.find('acme', 'none'))!.reference, null);
      await advance(1000);
      await store.prune({ bodiesMs: 0, tombstonesMs: 1e12, limit: 100 });
      const { reference, amount, currency } = (await store.find('acme', event.id))!;
      deepEqual({ reference, amount, currency }, { reference: null, amount: null, currency: null });
      deepEqual(await found(store, 'order'), []);
    },
  },
  {
    title:
      'search() finds events by the start of their id or reference, and by their whole transaction id',
    async run({ store }) {
      const summary = { reference: 'order-17', amount: null, currency: null };
      await store.receive([
        incoming({ id: 'alpha', orderingKey: 'tx_1%' }),
        incoming({ id: 'delta', orderingKey: 'tx_1%', oncePerTransaction: true }),
        incoming({ id: 'beta', summary, company: 'umbrella' }),
        incoming({ id: 'order-1' }),
        incoming({ id: 'gamma', orderingKey: 'order-1' }),
      ]);
      deepEqual(await found(store, 'alph'), ['alpha']);
      deepEqual(await found(store, 'lpha'), []);
      deepEqual(await found(store, 'tx_1%'), ['alpha', 'delta']);
      deepEqual(await found(store, 'tx_1'), []);
      deepEqual(await found(store, 'order-1'), ['beta', 'gamma', 'order-1']);
      deepEqual(await found(store, 'order-1', { company: 'umbrella' }), ['beta']);
      deepEqual(await found(store, 'order-'), ['beta', 'order-1']);
      deepEqual(await found(store, 'order-17'), ['beta']);
      deepEqual(await found(store, 'transaction.completed'), []);
    },
  },
  {
    title:
      'OP-10 search() finds a reference in upper or lower case, and an id only in its own case',
    async run({ store }) {
      const summary = { reference: 'Order-\u00c9-17', amount: null, currency: null };
      await store.receive([incoming({ id: 'Evt-1', summary }), incoming({ id: 'evt-2' })]);
      for (const text of ['order-', 'ORDER-\u00c9-17', 'Order-\u00c9']) {
        deepEqual(await found(store, text), ['Evt-1']);
      }
      // Only A to Z match in either case.
      deepEqual(await found(store, 'order-\u00e9'), []);
      deepEqual(await found(store, 'evt'), ['evt-2']);
    },
  },
  {
    title: 'OP-10 search() finds an amount in any notation, with or without its currency',
    async run({ store }) {
      const amounts = {
        a: '350',
        b: '350.00',
        c: '350.5',
        d: '1250.00',
        e: '3500',
        f: 'about 350',
      };
      const events = Object.entries(amounts).map(([id, amount]) => {
        const currency = id === 'b' ? 'USD' : 'KES';
        return incoming({ id, summary: { reference: null, amount, currency } });
      });
      const numbered = { reference: '350-A', amount: '7', currency: 'KES' };
      await store.receive([...events, incoming({ id: 'g', summary: numbered })]);
      const searches = {
        350: ['a', 'b', 'g'],
        '350.00': ['a', 'b'],
        '350.50': ['c'],
        'KES 350': ['a'],
        'kes\u00a0350.0': ['a'],
        '350usd': ['b'],
        '1,250': ['d'],
        '1,250.00 KES': ['d'],
        'KES 350 KES': [],
        '12,50': [],
        35: ['g'],
      };
      for (const [text, ids] of Object.entries(searches)) {
        deepEqual([text, await found(store, text)], [text, ids]);
      }
      deepEqual(await found(store, '350', { handler: 'nobody' }), []);
    },
  },
  {
    title:
      'OP-11 eventsOf() returns the events of one transaction or reference, newest first, with their histories and repeats',
    async run({ store }) {
      const summary = { reference: 'Order-1', amount: '5', currency: 'KES' };
      const worker = await TestWorker.start(store);
      const first = incoming({ id: 'first', summary, orderingKey: 'tx', oncePerTransaction: true });
      await store.receive([first]);
      const failure = { error: 'no ledger', frames: 'at book (src/book.ts:1:2)', retryInMs: null };
      await store.fail(await worker.claimOne(), failure);
      await store.receive([
        { ...first, id: 'again' },
        incoming({ id: 'second', orderingKey: 'tx', eventType: 'payout.settled' }),
        incoming({ id: 'longer', summary: { ...summary, reference: 'Order-10' } }),
        incoming({ id: 'other', orderingKey: 'tx', company: 'umbrella' }),
      ]);
      const ids = async (payment: string) =>
        (await store.eventsOf('acme', payment)).map(({ id }) => id);
      deepEqual(await ids('tx'), ['second', 'first']);
      deepEqual(await ids('Order-1'), ['first']);
      deepEqual([await ids('order-1'), await ids('t'), await ids('')], [[], [], []]);
      const [, event] = await store.eventsOf('acme', 'tx');
      const whole = (await store.find('acme', 'first'))!;
      deepEqual({ ...event, raw: null }, { ...whole, raw: null });
      deepEqual([event!.raw, event!.repeats.map(({ id }) => id)], [null, ['again']]);
      equal(event!.deliveries[0]!.history.length, 1);
    },
  },
  {
    title: 'OP-12 the frames of the last failed attempt are stored, and are not in lists',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ id: 'a' })]);
      const framesOf = async () => (await store.find('acme', 'a'))!.deliveries[0]!.frames;
      equal(await framesOf(), null);
      for (const frames of ['at book (src/\uD83D.ts:1:2)\nat pay (src/pay.ts:3:4)', undefined]) {
        const failure = { error: 'no ledger', retryInMs: 0, ...(frames && { frames }) };
        await store.fail(await worker.claimOne(), failure);
        equal(await framesOf(), frames ?? null);
      }
      const page = await store.list({ filter: {}, order: 'newest', limit: 1, after: null });
      equal(page.events[0]!.deliveries[0]!.frames, null);
    },
  },
  {
    title: 'a stored event shows whether it is a tombstone',
    async run({ store, advance }) {
      const pruned = async () => {
        const page = await store.list({ filter: {}, order: 'newest', limit: 9, after: null });
        return [...page.events, (await store.find('acme', 'a'))!].map((event) => event.pruned);
      };
      await store.receive([incoming({ id: 'a', handlers: [] })]);
      deepEqual(await pruned(), [false, false]);
      await advance(1000);
      await store.prune({ bodiesMs: 0, tombstonesMs: 1e12, limit: 100 });
      deepEqual(await pruned(), [true, true]);
    },
  },
  {
    title: 'search() accepts any characters, and finds ids that contain them',
    async run({ store }) {
      const ids = ["'; drop table", '%_\\', '\u{1F4B6} euro', '\uD83D lone', '"quoted"', 'a*?'];
      await store.receive(ids.map((id) => incoming({ id })));
      for (const id of ids) deepEqual(await found(store, id), [id]);
      for (const text of ['\0', '\uDC00', 'x'.repeat(10_000), '\u{10FFFF}']) {
        deepEqual(await found(store, text), []);
      }
    },
  },
  {
    title: 'a search with more results than a page returns each event once',
    async run({ store }) {
      const all = Array.from({ length: 25 }, (_, n) => `event-${String(n).padStart(2, '0')}`);
      const summary = { reference: 'event-x', amount: null, currency: null };
      await store.receive(all.map((id) => incoming({ id, summary, orderingKey: 'event-' })));
      const pages: string[] = [];
      let after: string | null = null;
      do {
        const query = { filter: { search: 'event-' }, order: 'oldest', limit: 10, after } as const;
        const page = await store.list(query);
        pages.push(...page.events.map(({ id }) => id));
        after = page.next;
      } while (after !== null);
      deepEqual(pages.toSorted(), all);
    },
  },
  {
    title: 'OP-40 failures() returns pending, running and dead deliveries after a failed attempt',
    async run({ store, advance }) {
      deepEqual(await store.failures(), { failed: [], more: false });
      await fail(store, 'no ledger', ['a', 'b']);
      const { startedAt } = (await store.find('acme', 'a'))!.deliveries[0]!.history[0]!;
      await advance(5000);
      await fail(store, 'no ledger', ['c'], 'other');
      const worker = await TestWorker.start(store);
      await store.receive([incoming({ id: 'd' })]);
      await store.fail(await worker.claimOne(), { error: 'no ledger', retryInMs: 60_000 });
      const { failed, more } = await store.failures();
      equal(more, false);
      const found = failed.map((one) => ({ ...one, failedAt: undefined }));
      const book = { handler: 'book', error: 'no ledger', failedAt: undefined };
      deepEqual(found, [
        { ...book, state: 'retrying', company: 'acme', eventId: 'd' },
        { ...book, state: 'dead', company: 'other', eventId: 'c' },
        { ...book, state: 'dead', company: 'acme', eventId: 'b' },
        { ...book, state: 'dead', company: 'acme', eventId: 'a' },
      ]);
      const [, c, , first] = failed.map(({ failedAt }) => failedAt);
      equal(first! >= startedAt, true);
      equal(c!.getTime() - first!.getTime() >= 5000, true);
      await store.skip([{ company: 'acme', id: 'd', handlers: ['book'] }]);
      equal(
        (await store.failures()).failed.some(({ state }) => state === 'retrying'),
        false,
      );
    },
  },
];
