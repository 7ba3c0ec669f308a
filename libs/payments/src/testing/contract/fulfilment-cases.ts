import { deepEqual, equal, ok } from 'node:assert/strict';
import { POLL_HANDLER } from '../../inbox/store/expectation-store.js';
import { incoming, outcomesOf, TestWorker, twoWorkers } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-fixtures.js';
import { expectOne, fulfilling, stored, unknown } from './expectation-cases.js';

/** Which events fulfil an expectation, also while its poll runs. */
export const fulfilmentCases: readonly InboxContractCase[] = [
  {
    title: 'EX-05 an event fulfils the expectations of its transaction and of its reference',
    async run({ store, another }) {
      const other = await another();
      // The stores have received events before there is an expectation.
      await store.receive([incoming()]);
      await other.receive([fulfilling({ orderingKey: 'tx', reference: 'order' })]);
      const byTransaction = await expectOne(store, { transactionId: 'tx' });
      const byReference = await expectOne(store, { reference: 'order' });
      const attached = await expectOne(store);
      await store.expectations.attach('acme', attached.reference, 'tx');
      const event = fulfilling({ orderingKey: 'tx', reference: 'order' });
      const before = await stored(store, byReference);
      await other.receive([incoming(), event, incoming()]);
      for (const expectation of [byTransaction, byReference, attached]) {
        const { state, nextPollAt, polls, fulfilled } = await stored(store, expectation);
        deepEqual([state, nextPollAt, polls], ['fulfilled', null, 0]);
        const { at, ...rest } = fulfilled!;
        deepEqual(rest, { by: 'webhook', eventId: event.id, eventType: event.eventType });
        ok(at >= before.createdAt, 'the time is before the expectation');
      }
      const worker = await TestWorker.start(store);
      deepEqual(await worker.claim([POLL_HANDLER]), []);
      const second = fulfilling({ orderingKey: 'tx', eventType: 'transaction.refunded' });
      await store.receive([second]);
      equal((await stored(store, byTransaction)).fulfilled?.eventId, event.id);
    },
  },
  {
    title: 'EX-05 an event of another company, transaction or kind fulfils no expectation',
    async run({ store }) {
      const expectation = await expectOne(store, { transactionId: 'tx', reference: 'order' });
      const none = await expectOne(store);
      await store.receive([
        fulfilling({ orderingKey: 'tx', reference: 'order', company: 'umbrella' }),
        fulfilling({ orderingKey: 'order', reference: 'tx' }),
        incoming({ orderingKey: 'tx', reference: 'order' }),
        fulfilling(),
      ]);
      const outdated = fulfilling({ orderingKey: 'tx', catalogVersion: 7 });
      deepEqual(outcomesOf(await store.receive([outdated])), ['outdated']);
      equal((await stored(store, expectation)).state, 'waiting');
      equal((await stored(store, none)).state, 'waiting');
      await store.expectations.cancel('acme', 'order');
      await store.receive([fulfilling({ orderingKey: 'tx' })]);
      const { state, fulfilled } = await stored(store, expectation);
      deepEqual([state, fulfilled], ['cancelled', null]);
    },
  },
  {
    title: 'EX-04 a duplicate fulfils with the id and the source of the stored event',
    async run({ store }) {
      const once = { onceKey: 'tx', orderingKey: 'tx' };
      const first = fulfilling({ id: 'poll:tx', source: 'poll', ...once });
      const copy = fulfilling(once);
      await store.receive([first, fulfilling({ id: 'again', orderingKey: 'again' })]);
      const [a, b] = [
        await expectOne(store, { transactionId: 'tx' }),
        await expectOne(store, { transactionId: 'again' }),
      ];
      const again = fulfilling({ id: 'again', orderingKey: 'again' });
      deepEqual(outcomesOf(await store.receive([copy, again])), ['duplicate', 'duplicate']);
      const found = [await stored(store, a), await stored(store, b)];
      deepEqual(
        found.map(({ state, fulfilled }) => [state, fulfilled?.by, fulfilled?.eventId]),
        [
          ['fulfilled', 'poll', 'poll:tx'],
          ['fulfilled', 'webhook', 'again'],
        ],
      );
      // Two polls that find the same event create different bodies.
      const other = await expectOne(store, { reference: 'another', transactionId: 'tx' });
      await store.receive([{ ...first, raw: Buffer.from('{"id":"poll:tx","later":true}') }]);
      equal((await stored(store, other)).fulfilled?.eventId, 'poll:tx');
    },
  },
  {
    title: 'EX-05 EX-07 an event fulfils an overdue expectation and one whose poll is running',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const overdue = await expectOne(store, { transactionId: 'late' });
      const { expectations } = await another();
      const late = await worker.claimOne(POLL_HANDLER);
      equal((await expectations.settlePoll(late, unknown('overdue', 'timeout'))).settled, true);
      const { state, lastPoll, polls, nextPollAt } = await stored(store, overdue);
      deepEqual([state, polls, nextPollAt], ['overdue', 1, null]);
      deepEqual([lastPoll?.result, lastPoll?.detail], ['unknown', 'timeout']);
      const running = await expectOne(store, { transactionId: 'tx' });
      const lease = await worker.claimOne(POLL_HANDLER);
      equal((await stored(store, running)).nextPollAt, null);
      const event = fulfilling({ orderingKey: 'late' });
      await store.receive([event, fulfilling({ orderingKey: 'tx' })]);
      equal((await stored(store, overdue)).fulfilled?.eventId, event.id);
      equal((await expectations.settlePoll(lease, unknown(0))).settled, true);
      const found = await stored(store, running);
      deepEqual([found.state, found.polls, found.nextPollAt], ['fulfilled', 1, null]);
      deepEqual(await worker.claim([POLL_HANDLER]), []);
      equal((await expectations.settlePoll(lease, unknown(0))).settled, false);
      equal((await stored(store, running)).polls, 1);
    },
  },
  {
    title: 'EX-05 a webhook while a poll is claimed or settled leaves no poll behind',
    async run({ store, another }) {
      const [worker, other] = await twoWorkers({ store, another });
      for (let round = 0; round < 20; round += 1) {
        const all = [];
        for (let n = 0; n < 4; n += 1)
          all.push(await expectOne(store, { transactionId: `${round} ${n}` }));
        const leases = await worker.claim([POLL_HANDLER], 2);
        const events = all.map(({ transactionId }) => fulfilling({ orderingKey: transactionId }));
        const [claimed] = await Promise.all([
          worker.claim([POLL_HANDLER]),
          other.store.receive(events),
          ...leases.map((lease) => store.expectations.settlePoll(lease, unknown(0))),
        ]);
        for (const lease of claimed) await store.expectations.settlePoll(lease, unknown(0));
        for (const one of all) {
          const { state, nextPollAt } = await stored(store, one);
          deepEqual([state, nextPollAt], ['fulfilled', null], `round ${round}`);
        }
        deepEqual(await worker.claim([POLL_HANDLER]), []);
      }
    },
  },
  {
    title: 'EX-06 eventsOf returns the events that are stored once per transaction',
    async run({ store, another, advance }) {
      const event = (eventType: string, onceKey: string | null, company = 'acme') =>
        incoming({ eventType, onceKey, orderingKey: 'tx', company, handlers: [] });
      const [paid, declined] = [event('paid', 'tx'), event('declined', 'tx')];
      await store.receive([paid, declined, event('paid', 'tx'), event('other', null)]);
      await store.receive([event('refunded', 'tx', 'umbrella'), event('refunded', 'tx 2')]);
      const types = ['declined', 'other', 'paid', 'refunded'];
      const eventsOf = async (eventTypes: readonly string[], company = 'acme', id = 'tx') => {
        const found = await (await another()).expectations.eventsOf(company, id, eventTypes);
        return found.map(({ id, eventType }) => `${eventType} ${id}`).toSorted();
      };
      deepEqual(await eventsOf(types), [`declined ${declined.id}`, `paid ${paid.id}`]);
      deepEqual(await eventsOf(['paid']), [`paid ${paid.id}`]);
      deepEqual(await eventsOf([]), []);
      deepEqual(await eventsOf(types, 'acme', 'tx 3'), []);
      equal((await eventsOf(types, 'umbrella')).length, 1);
      await advance(5000);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 1e9, limit: 100 });
      deepEqual(await eventsOf(['paid']), [`paid ${paid.id}`]);
    },
  },
];
