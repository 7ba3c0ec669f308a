import { deepEqual, equal, ok } from 'node:assert/strict';
import { incoming, outcomesOf, REDRIVE_NOW, select } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';
import {
  claimPoll,
  claimPolls,
  expectOne,
  fulfilling,
  settle,
  settleFound,
  stored,
  unknown,
} from './expectation-cases.ts';

/** Which events fulfil an expectation, also while its poll runs. */
export const fulfilmentCases: readonly InboxContractCase[] = [
  {
    title: 'EX-05 an event fulfils the expectations of its transaction and of its reference',
    async run({ store, another }) {
      const other = await another();
      // The stores have received events before there is an expectation.
      await store.receive([incoming()]);
      await other.receive([fulfilling({ orderingKey: 'tx 0', reference: 'order' })]);
      const attached = await expectOne(store);
      await store.expectations.attach('acme', attached.reference, 'tx');
      const byTransaction = await expectOne(store, { transactionId: 'tx' });
      const byReference = await expectOne(store, { reference: 'order' });
      const event = fulfilling({ orderingKey: 'tx', reference: 'order' });
      const before = await stored(store, byReference);
      const receipts = await other.receive([incoming(), event, incoming()]);
      for (const expectation of [byTransaction, byReference, attached]) {
        const { state, nextPollAt, polls, fulfilled } = await stored(store, expectation);
        deepEqual([state, nextPollAt, polls], ['fulfilled', null, 0]);
        const { at, ...rest } = fulfilled!;
        deepEqual(rest, { by: 'webhook', eventId: event.id, eventType: event.eventType });
        ok(at >= before.createdAt, 'the time is before the expectation');
      }
      const reported = receipts.map(({ fulfilled }) =>
        fulfilled.toSorted((a, b) => (a.reference < b.reference ? -1 : 1)),
      );
      const fulfilled = [byTransaction, byReference, attached].map(({ reference }) => ({
        reference,
        transactionId: reference === 'order' ? null : 'tx',
        by: 'webhook' as const,
      }));
      const sorted = fulfilled.toSorted((a, b) => (a.reference < b.reference ? -1 : 1));
      deepEqual(reported, [[], sorted, []]);
      deepEqual(await claimPolls(store), []);
      const second = fulfilling({ orderingKey: 'tx', eventType: 'transaction.refunded' });
      deepEqual((await store.receive([second]))[0]!.fulfilled, []);
      equal((await stored(store, byTransaction)).fulfilled?.eventId, event.id);
    },
  },
  {
    title: 'EX-05 an event of another company, transaction or kind fulfils no expectation',
    async run({ store }) {
      const expectation = await expectOne(store, { transactionId: 'tx', reference: 'order' });
      const none = await expectOne(store);
      const named = await expectOne(store, { reference: 'null', transactionId: 'null' });
      await store.receive([
        fulfilling({ orderingKey: 'tx', reference: 'order', company: 'umbrella' }),
        fulfilling({ orderingKey: 'order', reference: 'tx' }),
        incoming({ orderingKey: 'tx', reference: 'order' }),
        fulfilling(),
      ]);
      const outdated = fulfilling({ orderingKey: 'tx', catalogVersion: 7 });
      deepEqual(outcomesOf(await store.receive([outdated])), ['outdated']);
      for (const one of [expectation, none, named]) {
        equal((await stored(store, one)).state, 'waiting');
      }
      await store.expectations.cancel('acme', 'order');
      await store.receive([fulfilling({ orderingKey: 'tx' })]);
      const { state, fulfilled, otherEventId } = await stored(store, expectation);
      deepEqual([state, fulfilled, otherEventId], ['cancelled', null, null]);
    },
  },
  {
    title:
      'EX-05 a copy of a stored event fulfils an expectation, and a copy with another body does not',
    async run({ store }) {
      const event = fulfilling({ orderingKey: 'tx', raw: Buffer.from('{}') });
      await store.receive([event]);
      const one = await expectOne(store, { transactionId: 'tx' });
      const conflict = { ...event, raw: Buffer.from('{"other":1}') };
      deepEqual(outcomesOf(await store.receive([conflict])), ['conflict']);
      equal((await stored(store, one)).state, 'waiting');
      deepEqual(outcomesOf(await store.receive([event])), ['duplicate']);
      equal((await stored(store, one)).state, 'fulfilled');
    },
  },
  {
    title:
      'EX-05 an event of another transaction does not fulfil an expectation with an attached id, but is recorded in it',
    async run({ store, another }) {
      const one = await expectOne(store, { transactionId: 'tx 1', reference: 'order' });
      const other = fulfilling({ orderingKey: 'tx 2', reference: 'order' });
      const without = fulfilling({ reference: 'order' });
      const [receipt] = await store.receive([other]);
      deepEqual(receipt!.fulfilled, []);
      const noted = await stored(await another(), one);
      deepEqual([noted.state, noted.otherEventId], ['waiting', other.id]);
      await store.receive([without]);
      equal((await stored(store, one)).otherEventId, without.id);
      equal((await claimPoll(store)).expectation.transactionId, 'tx 1');
      const paid = fulfilling({ orderingKey: 'tx 1', reference: 'order' });
      await store.receive([paid]);
      const { state, fulfilled } = await stored(store, one);
      deepEqual([state, fulfilled?.eventId], ['fulfilled', paid.id]);
      const third = fulfilling({ orderingKey: 'tx 3', reference: 'order' });
      await store.receive([third]);
      equal((await stored(store, one)).otherEventId, third.id);
    },
  },
  {
    title:
      'EX-05 each event of a batch has the same effect on expectations as if it was received alone',
    async run({ store }) {
      const events = (reference: string, ...keys: string[]) =>
        keys.map((orderingKey) => fulfilling({ orderingKey, reference }));
      const open = await expectOne(store, { reference: 'open' });
      const own = await expectOne(store, { reference: 'own', transactionId: 'b 2' });
      const [first, second, third] = events('open', 'a 1', 'a 2', 'a 3');
      const [before, paid, after] = events('own', 'b 1', 'b 2', 'b 3');
      const batch = [first!, before!, second!, paid!, third!];
      const receipts = await store.receive(batch);
      deepEqual(
        receipts.map(({ fulfilled }) => fulfilled.map(({ reference }) => reference)),
        [['open'], [], [], ['own'], []],
      );
      const results = async () =>
        Promise.all(
          [open, own].map(async (one) => {
            const { fulfilled, otherEventId } = await stored(store, one);
            return [fulfilled?.eventId, otherEventId];
          }),
        );
      deepEqual(await results(), [
        [first!.id, third!.id],
        [paid!.id, before!.id],
      ]);
      await store.receive([second!, after!]);
      deepEqual(await results(), [
        [first!.id, second!.id],
        [paid!.id, after!.id],
      ]);
    },
  },
  {
    title:
      'EX-05 attach() reopens an expectation that an event of another transaction has fulfilled',
    async run({ store, another }) {
      const one = await expectOne(store, { reference: 'order', firstPollInMs: 60_000 });
      const other = fulfilling({ orderingKey: 'tx 2', reference: 'order' });
      await store.receive([other]);
      equal((await stored(store, one)).state, 'fulfilled');
      equal(await (await another()).expectations.attach('acme', 'order', 'tx 1'), 'attached');
      const found = await stored(store, one);
      deepEqual([found.state, found.fulfilled, found.otherEventId], ['waiting', null, other.id]);
      equal((await claimPoll(store)).expectation.reference, 'order');
      const same = await expectOne(store, { reference: 'same' });
      await store.receive([fulfilling({ orderingKey: 'tx 4', reference: 'same' })]);
      await store.expectations.attach('acme', 'same', 'tx 4');
      equal((await stored(store, same)).state, 'fulfilled');
    },
  },
  {
    title:
      'EX-04 a duplicate fulfils an expectation with the id and source of the stored event, but a conflict does not',
    async run({ store }) {
      const once = { orderingKey: 'tx', oncePerTransaction: true };
      const first = fulfilling({ id: 'poll:tx', source: 'poll', ...once });
      const copy = fulfilling(once);
      await store.receive([first, fulfilling({ id: 'again', orderingKey: 'again' })]);
      const a = await expectOne(store, { transactionId: 'tx' });
      const b = await expectOne(store, { transactionId: 'again' });
      const again = fulfilling({ id: 'again', orderingKey: 'again' });
      const conflicting = { ...again, raw: Buffer.from('{"id":"again","other":true}') };
      const [conflict] = await store.receive([conflicting]);
      deepEqual([conflict!.outcome, conflict!.fulfilled], ['conflict', []]);
      equal((await stored(store, b)).state, 'waiting');
      const receipts = await store.receive([copy, again]);
      deepEqual(outcomesOf(receipts), ['duplicate', 'duplicate']);
      deepEqual(
        receipts.map(({ fulfilled }) => fulfilled.map(({ by }) => by)),
        [['poll'], ['webhook']],
      );
      const found = [await stored(store, a), await stored(store, b)];
      deepEqual(
        found.map(({ state, fulfilled }) => [state, fulfilled?.by, fulfilled?.eventId]),
        [
          ['fulfilled', 'poll', 'poll:tx'],
          ['fulfilled', 'webhook', 'again'],
        ],
      );
    },
  },
  {
    title:
      'EX-05 EX-07 an event fulfils an overdue expectation and an expectation whose poll is running',
    async run({ store, another }) {
      const overdue = await expectOne(store, { transactionId: 'late' });
      const other = await another();
      const late = await claimPoll(store);
      const ended = await settle(other, late, unknown('overdue', 'timeout'));
      deepEqual([ended.settled, ended.state, ended.changed], [true, 'overdue', true]);
      const { state, lastPoll, polls, nextPollAt } = await stored(store, overdue);
      deepEqual([state, polls, nextPollAt], ['overdue', 1, null]);
      deepEqual([lastPoll?.result, lastPoll?.detail], ['unknown', 'timeout']);
      const running = await expectOne(store, { transactionId: 'tx' });
      const claimed = await claimPoll(store);
      equal((await stored(store, running)).nextPollAt, null);
      const event = fulfilling({ orderingKey: 'late' });
      await store.receive([event, fulfilling({ orderingKey: 'tx' })]);
      equal((await stored(store, overdue)).fulfilled?.eventId, event.id);
      const settled = await settle(other, claimed, unknown(0));
      deepEqual([settled.settled, settled.state, settled.changed], [true, 'fulfilled', false]);
      const found = await stored(store, running);
      deepEqual([found.state, found.polls, found.nextPollAt], ['fulfilled', 1, null]);
      deepEqual(await claimPolls(store), []);
      equal((await settle(other, claimed, unknown(0))).settled, false);
      equal((await stored(store, running)).polls, 1);
    },
  },
  {
    title: 'EX-05 a webhook, a cancel and a poll at the same moment leave one consistent result',
    async run({ store, another }) {
      const other = await another();
      for (let round = 0; round < 20; round += 1) {
        const all = [];
        for (let n = 0; n < 4; n += 1)
          all.push(await expectOne(store, { transactionId: `${round} ${n}` }));
        const claimed = await claimPolls(store, 3);
        const events = all.map(({ transactionId }) => fulfilling({ orderingKey: transactionId }));
        const overdue = incoming({ handlers: [], source: 'overdue', eventType: 'overdue' });
        const [, cancelled, ...settled] = await Promise.all([
          other.receive(events),
          other.expectations.cancel('acme', all[1]!.reference),
          ...claimed.map((one, n) =>
            settle(store, one, unknown(n === 2 ? 'overdue' : 0), {
              event: n === 2 ? overdue : null,
            }),
          ),
        ]);
        for (const one of await claimPolls(store)) await settle(store, one, unknown(0));
        for (const [n, one] of all.entries()) {
          const { state, nextPollAt } = await stored(store, one);
          const expectedState = n === 1 && cancelled ? 'cancelled' : 'fulfilled';
          deepEqual([state, nextPollAt], [expectedState, null], `round ${round}, payment ${n}`);
        }
        const wasOverdue = settled[2]!.changed && settled[2]!.state === 'overdue';
        const found = await store.find('acme', overdue.id);
        equal(found !== undefined, wasOverdue, `round ${round}`);
        deepEqual(await claimPolls(store), []);
      }
    },
  },
  {
    title: 'EX-17 a stale event fulfils its expectations only after it is redriven',
    async run({ store, another }) {
      const stale = fulfilling({
        orderingKey: 'tx',
        reference: 'order',
        stale: true,
        fulfils: false,
      });
      await store.receive([
        { ...stale, summary: { reference: 'order', amount: null, currency: null } },
      ]);
      const one = await expectOne(store, { transactionId: 'tx' });
      const named = await expectOne(store, { reference: 'order' });
      equal((await store.find('acme', stale.id))!.stale, true);
      const fulfils = ['transaction.completed'];
      const other = await another();
      equal(await other.redrive(select(stale.id), { ...REDRIVE_NOW, fulfils }), 1);
      equal((await store.find('acme', stale.id))!.stale, false);
      for (const expectation of [one, named]) {
        const { state, fulfilled } = await stored(store, expectation);
        deepEqual([state, fulfilled?.eventId], ['fulfilled', stale.id]);
      }
      // A poll that was claimed before finds the same payment.
      equal(await store.expectations.pollNow([one], [0]), 1);
      const settled = await settleFound(store, await claimPoll(store), 'tx');
      deepEqual([settled.receipt?.outcome, settled.receipt?.id], ['duplicate', stale.id]);
      deepEqual(outcomesOf(await store.receive([fulfilling({ orderingKey: 'tx' })])), [
        'duplicate',
      ]);
    },
  },
  {
    title:
      'EX-17 a redrive of a stale event adds no delivery if a poll has already found the payment',
    async run({ store, another }) {
      const stale = fulfilling({ orderingKey: 'tx', stale: true, fulfils: false });
      await store.receive([stale]);
      await expectOne(store, { transactionId: 'tx' });
      const settled = await settleFound(store, await claimPoll(store), 'tx');
      deepEqual([settled.result, settled.receipt?.outcome], ['event', 'stored']);
      const fulfils = ['transaction.completed'];
      equal(await (await another()).redrive(select(stale.id), { ...REDRIVE_NOW, fulfils }), 0);
      deepEqual((await store.find('acme', stale.id))!.deliveries, []);
    },
  },
];
