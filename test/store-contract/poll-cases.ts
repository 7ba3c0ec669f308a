import { deepEqual, equal, ok } from 'node:assert/strict';
import { POLL_HANDLER } from '../../libs/payments/dist/inbox/store/expectation-store.js';
import type { ExpectationState } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';
import {
  claimPoll,
  claimPolls,
  expected,
  expectOne,
  fulfilling,
  POLL_LEASE_MS,
  settle,
  settleFound,
  stored,
  unknown,
} from './expectation-cases.ts';
import { EXPECTATION_TRANSITIONS } from './transitions.ts';

/** The schedule of polls, their results, and the end of expectations. */
export const pollCases: readonly InboxContractCase[] = [
  {
    title: 'EX-03 polls are due as scheduled, one at a time',
    async run({ store, another, advance }) {
      const other = await another();
      const expectation = await expectOne(store, { firstPollInMs: 15_000 });
      deepEqual(await claimPolls(store), []);
      const dueInMs = (await store.expectations.nextPollInMs())!;
      ok(dueInMs > 5000 && dueInMs <= 15_000, `due in ${dueInMs} ms`);
      for (let poll = 1; poll <= 15; poll += 1) {
        await advance(15_000);
        const claimed = await claimPoll(store);
        equal(claimed.expectation.reference, expectation.reference);
        deepEqual([claimed.expectation.lostPolls, claimed.expectation.nextPollAt], [0, null]);
        deepEqual(await claimPolls(other), []);
        const detail = `poll ${poll} ${'x'.repeat(2000)}`;
        const pending = { result: 'pending', detail, next: 15_000 } as const;
        const settled = await settle(other, claimed, pending);
        deepEqual([settled.settled, settled.nextPollInMs], [true, 15_000]);
        const { polls, lastPoll, nextPollAt, state, ageMs } = await stored(store, expectation);
        ok(
          ageMs >= poll * 15_000 - 1000 && ageMs < poll * 15_000 + 60_000,
          `its age is ${ageMs} ms`,
        );
        deepEqual([polls, lastPoll?.result, state], [poll, 'pending', 'waiting']);
        equal(lastPoll!.detail!.slice(0, 900), detail.slice(0, 900));
        ok(lastPoll!.detail!.length <= 1000);
        const inMs = nextPollAt!.getTime() - lastPoll!.at.getTime();
        ok(inMs >= 14_000 && inMs < 16_000, `the next poll is due after ${inMs} ms`);
        deepEqual(await claimPolls(store), []);
      }
      await advance(15_000);
      await settle(store, await claimPoll(store), unknown('end'));
      const { state, nextPollAt } = await stored(store, expectation);
      deepEqual([state, nextPollAt], ['waiting', null]);
      equal(await store.expectations.nextPollInMs(), null);
    },
  },
  {
    title: 'EX-03 40 concurrent claims lease each of 200 due polls exactly once',
    async run({ store, another }) {
      const other = await another();
      for (let n = 0; n < 200; n += 1) await expectOne(store);
      const claims = await Promise.all(
        Array.from({ length: 40 }, (_, n) => claimPolls(n % 2 === 0 ? store : other, 10)),
      );
      const seqs = claims.flat().map(({ seq }) => seq);
      equal(new Set(seqs).size, seqs.length);
      const rest = await claimPolls(store, 1000);
      equal(seqs.length + rest.length, 200);
      ok(claims.every((claimed) => claimed.length <= 10));
    },
  },
  {
    title:
      'IN-41 a poll whose lease ends counts as lost and is due again, and the old lease is no longer valid',
    async run({ store, another, advance }) {
      const expectation = await expectOne(store, { transactionId: 'tx' });
      const lost = await claimPoll(store);
      const other = await another();
      ok((await other.expectations.nextPollInMs())! > 0);
      await advance(POLL_LEASE_MS + 1000);
      ok((await other.expectations.nextPollInMs())! <= 0);
      const again = await claimPoll(other);
      deepEqual([again.seq, again.expectation.lostPolls], [lost.seq, 1]);
      ok(again.token > lost.token);
      equal((await settle(store, lost, unknown('overdue'))).settled, false);
      equal((await settleFound(store, lost, 'tx')).settled, false);
      equal(await store.find('acme', 'poll:tx:transaction.completed'), undefined);
      deepEqual((await stored(store, expectation)).lastPoll, null);
      await settle(other, again, unknown(1000), { keepLost: true });
      equal((await stored(store, expectation)).lostPolls, 1);
      for (let n = 2; n <= 4; n += 1) {
        await advance(POLL_LEASE_MS + 1000);
        equal((await claimPoll(other)).expectation.lostPolls, n - 1);
      }
      await advance(POLL_LEASE_MS + 1000);
      equal(await other.expectations.pollNow([expectation], [0]), 1);
      const last = await claimPoll(store);
      equal(last.expectation.lostPolls, 2);
      await settle(other, last, unknown(1000));
      equal((await stored(store, expectation)).lostPolls, 0);
    },
  },
  {
    title: 'EX-03 a released poll is due again, and it is not counted',
    async run({ store, another, advance }) {
      const expectation = await expectOne(store);
      const ended = await expectOne(store);
      const claimed = await claimPolls(store);
      await store.expectations.cancel('acme', ended.reference);
      const { expectations } = await another();
      await expectations.releasePolls(claimed, [5000, 5000]);
      deepEqual(await claimPolls(store), []);
      const { polls, nextPollAt, lostPolls } = await stored(store, expectation);
      deepEqual([polls, nextPollAt === null, lostPolls], [0, false, 0]);
      equal((await stored(store, ended)).nextPollAt, null);
      await advance(6000);
      const again = await claimPoll(store);
      equal(again.expectation.lostPolls, 0);
      await expectations.releasePolls(claimed, [0, 0]);
      deepEqual(await claimPolls(store), []);
    },
  },
  {
    title:
      'EX-03 attach() makes a poll of an overdue expectation due, and a shared store wakes the workers',
    async run({ store }) {
      const { reference } = await expectOne(store);
      await settle(store, await claimPoll(store), unknown('overdue'));
      const { shared } = store.capabilities;
      const woken = new Promise<void>((resolve) => (shared ? store.onWake(resolve) : resolve()));
      equal(await store.expectations.attach('acme', reference, 'tx'), 'attached');
      await woken;
      equal((await claimPoll(store)).expectation.transactionId, 'tx');
    },
  },
  {
    title:
      'EX-07 an overdue expectation is polled again if its last outcome schedules a poll, and stays overdue',
    async run({ store, another, advance }) {
      const one = await expectOne(store);
      const again = { ...unknown('overdue'), againInMs: 5000 };
      equal((await settle(store, await claimPoll(store), again)).nextPollInMs, 5000);
      deepEqual(await claimPolls(store), []);
      await advance(6000);
      const late = await claimPoll(await another());
      equal(late.expectation.state, 'overdue');
      const settled = await settle(store, late, unknown(5000));
      deepEqual([settled.state, settled.changed, settled.nextPollInMs], ['overdue', false, 5000]);
      await advance(6000);
      await settle(store, await claimPoll(store), { ...unknown('end'), result: 'pending' });
      await advance(600_000);
      deepEqual(await claimPolls(store), []);
      equal((await stored(store, one)).state, 'overdue');
    },
  },
  {
    title: 'EX-15 attach() sets the number of lost polls to 0',
    async run({ store, advance }) {
      const one = await expectOne(store);
      await claimPoll(store);
      await advance(60_000);
      equal((await claimPoll(store)).expectation.lostPolls, 1);
      await store.expectations.attach('acme', one.reference, 'tx');
      equal((await stored(store, one)).lostPolls, 0);
    },
  },
  {
    title: 'EX-06 the detail of a poll may have any characters',
    async run({ store, another }) {
      const one = await expectOne(store);
      const detail = 'a "b" \\ \0 \ud800 \ue000 😀';
      await settle(store, await claimPoll(store), unknown(1000, detail));
      equal((await stored(await another(), one)).lastPoll?.detail, detail);
    },
  },
  {
    title:
      'EX-04 a poll that finds an event stores the event and fulfils the expectation in one step',
    async run({ store, another }) {
      const one = await expectOne(store, { transactionId: 'tx' });
      const same = await expectOne(store, { transactionId: 'tx' });
      const [first, second] = (await claimPolls(store)) as [never, never];
      const settled = await settleFound(store, first, 'tx', 'transaction.completed', {
        handlers: ['book'],
      });
      deepEqual([settled.result, settled.state, settled.changed], ['event', 'fulfilled', true]);
      const { outcome, id, pending, fulfilled } = settled.receipt!;
      deepEqual([outcome, pending, fulfilled.length], ['stored', true, 2]);
      for (const expectation of [one, same]) {
        const { state, fulfilled: by, nextPollAt } = await stored(store, expectation);
        deepEqual([state, by?.by, by?.eventId, nextPollAt], ['fulfilled', 'poll', id, null]);
      }
      // Two polls that find the same event create different bodies.
      const again = await settleFound(await another(), second, 'tx');
      deepEqual([again.settled, again.result, again.changed], [true, 'event', false]);
      ok(again.receipt!.outcome !== 'stored');
      equal(again.receipt!.id, id);
      const third = await expectOne(store, { transactionId: 'tx' });
      const late = await settleFound(store, await claimPoll(store), 'tx');
      deepEqual([late.state, late.changed], ['fulfilled', true]);
      equal((await stored(store, third)).fulfilled?.eventId, id);
      equal((await store.find('acme', id))!.deliveries.length, 1);
    },
  },
  {
    title: 'EX-04 a poll is not settled if its event has an outdated catalog version',
    async run({ store }) {
      const one = await expectOne(store, { transactionId: 'tx' });
      const claimed = await claimPoll(store);
      const settled = await settleFound(store, claimed, 'tx', 'transaction.completed', {
        catalogVersion: 7,
      });
      deepEqual([settled.settled, settled.receipt?.outcome], [false, 'outdated']);
      equal((await stored(store, one)).polls, 0);
      equal((await settleFound(store, claimed, 'tx')).settled, true);
    },
  },
  {
    title:
      'EX-06 a poll that contradicts a stored event stores no event, even if that event arrived during the poll',
    async run({ store, another }) {
      const expectation = await expectOne(store, { transactionId: 'tx' });
      const claimed = await claimPoll(store);
      const event = fulfilling({ orderingKey: 'tx' });
      await store.receive([event]);
      const settled = await settleFound(await another(), claimed, 'tx', 'transaction.declined');
      deepEqual([settled.settled, settled.result, settled.receipt], [true, 'contradiction', null]);
      ok(settled.detail!.includes(event.id) && settled.detail!.includes('transaction.declined'));
      const found = await stored(store, expectation);
      deepEqual([found.state, found.fulfilled?.eventId], ['fulfilled', event.id]);
      deepEqual([found.polls, found.lastPoll?.result], [1, 'contradiction']);
      equal(found.contradiction, settled.detail);
      equal(await store.find('acme', 'poll:tx:transaction.declined'), undefined);
      equal(await store.expectations.pollNow([expectation], [0]), 1);
      await settle(store, await claimPoll(store), unknown(0, '404'));
      const { lastPoll, contradiction, polls } = await stored(store, expectation);
      deepEqual([polls, lastPoll?.detail, contradiction], [2, '404', found.contradiction]);
      deepEqual(await claimPolls(store), []);
    },
  },
  {
    title:
      'EX-06 a poll that contradicts an earlier stored event fulfils the expectation with that event',
    async run({ store, advance }) {
      const event = fulfilling({ orderingKey: 'tx' });
      await store.receive([event]);
      await advance(5000);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 1e9, limit: 100 });
      const one = await expectOne(store, { transactionId: 'tx' });
      const settled = await settleFound(
        store,
        await claimPoll(store),
        'tx',
        'transaction.declined',
      );
      deepEqual(
        [settled.result, settled.state, settled.changed],
        ['contradiction', 'fulfilled', true],
      );
      equal((await stored(store, one)).fulfilled?.eventId, event.id);
    },
  },
  {
    title:
      'EX-06 if a poll and a webhook report different events at the same moment, the event of the webhook is stored',
    async run({ store, another }) {
      const other = await another();
      for (let round = 0; round < 20; round += 1) {
        const tx = `tx ${round}`;
        const one = await expectOne(store, { transactionId: tx });
        const claimed = await claimPoll(store);
        const event = fulfilling({ orderingKey: tx });
        const [settled, [receipt]] = await Promise.all([
          settleFound(store, claimed, tx, 'transaction.declined'),
          other.receive([event]),
        ]);
        equal(receipt!.outcome, 'stored');
        const { fulfilled, contradiction } = await stored(store, one);
        const declined = await store.find('acme', `poll:${tx}:transaction.declined`);
        if (settled.result === 'contradiction') {
          deepEqual([declined, fulfilled?.eventId], [undefined, event.id]);
          ok(contradiction);
        } else {
          deepEqual([settled.receipt?.outcome, fulfilled?.by], ['stored', 'poll']);
        }
      }
    },
  },
  {
    title: 'EX-07 the overdue event is stored if and only if the expectation becomes overdue',
    async run({ store, another }) {
      const overdue = () =>
        incoming({ handlers: ['warn'], source: 'overdue', eventType: 'overdue' });
      const end = async (
        reference: string,
        meanwhile: () => Promise<unknown>,
        transactionId = reference,
      ) => {
        const one = await expectOne(store, { reference, transactionId });
        const claimed = await claimPoll(store);
        await meanwhile();
        const event = overdue();
        const settled = await settle(await another(), claimed, unknown('overdue'), { event });
        const found = await store.find('acme', event.id);
        const { state } = await stored(store, one);
        return [
          settled.state,
          settled.changed,
          settled.receipt?.outcome,
          found !== undefined,
          state,
        ];
      };
      const late = await end('late', async () => {});
      deepEqual(late, ['overdue', true, 'stored', true, 'overdue']);
      const paid = await end('paid', () => store.receive([fulfilling({ orderingKey: 'paid' })]));
      deepEqual(paid, ['fulfilled', false, undefined, false, 'fulfilled']);
      const ended = await end('ended', () => store.expectations.cancel('acme', 'ended'));
      deepEqual(ended, ['cancelled', false, undefined, false, 'cancelled']);
      // The event was received before the expectation was stored.
      await store.receive([fulfilling({ orderingKey: 'early' })]);
      const early = await end('early', async () => {});
      deepEqual(early, ['fulfilled', true, undefined, false, 'fulfilled']);
    },
  },
  {
    title: 'EX-01 an event that a poll finds for a cancelled expectation is stored',
    async run({ store }) {
      const one = await expectOne(store, { transactionId: 'tx' });
      const claimed = await claimPoll(store);
      await store.expectations.cancel('acme', one.reference);
      const settled = await settleFound(store, claimed, 'tx');
      deepEqual([settled.state, settled.receipt?.outcome], ['cancelled', 'stored']);
      equal((await stored(store, one)).nextPollAt, null);
    },
  },
  {
    title:
      'EX-11 pollNow() makes polls of waiting and fulfilled expectations due, but not of cancelled expectations',
    async run({ store, another, advance }) {
      const { expectations } = await another();
      const later = { firstPollInMs: 60_000 };
      const waiting = await expectOne(store, { reference: 'waiting', ...later });
      const soon = await expectOne(store, { reference: 'soon', firstPollInMs: 10_000 });
      const fulfilled = await expectOne(store, { reference: 'fulfilled', ...later });
      const cancelled = await expectOne(store, { reference: 'cancelled', ...later });
      await expectations.cancel('acme', 'cancelled');
      await store.receive([fulfilling({ reference: 'fulfilled' })]);
      const selected = [waiting, soon, fulfilled, cancelled, expected()];
      equal(await expectations.pollNow(selected, [0, 30_000, 0, 0, 0]), 3);
      const claimed = await claimPolls(store);
      const names = claimed.map(({ expectation }) => expectation.reference).toSorted();
      deepEqual(names, ['fulfilled', 'waiting']);
      equal(await expectations.pollNow([waiting, fulfilled], [0, 0]), 0);
      for (const one of claimed) await settle(store, one, unknown(60_000));
      const [first, second] = [await stored(store, waiting), await stored(store, fulfilled)];
      deepEqual([first.state, first.polls, first.nextPollAt === null], ['waiting', 1, false]);
      deepEqual([second.state, second.polls, second.nextPollAt], ['fulfilled', 1, null]);
      await advance(11_000);
      equal((await claimPoll(store)).expectation.reference, 'soon');
    },
  },
  {
    title: 'EX-03 a pause delays polls, and webhooks still fulfil expectations',
    async run({ store, another }) {
      const paid = await expectOne(store, { transactionId: 'tx' });
      const open = await expectOne(store);
      for (const name of [POLL_HANDLER, '*']) {
        await (await another()).pause(name, true);
        deepEqual(await claimPolls(store), []);
        equal(await store.expectations.nextPollInMs(), null);
        await store.receive([fulfilling({ orderingKey: 'tx' })]);
        equal((await stored(store, paid)).state, 'fulfilled');
        await store.pause(name, false);
      }
      equal((await claimPoll(store)).expectation.reference, open.reference);
    },
  },
  {
    title:
      'EX-07 counts() returns how many expectations are waiting, overdue and not paid, and overdue without an answer',
    async run({ store, another }) {
      const counts = async () => {
        const { expectations } = await another();
        const { waiting, overdueUnpaid, overdueUnknown } = await expectations.counts();
        return [waiting, overdueUnpaid, overdueUnknown].map(({ count, more }) => more || count);
      };
      deepEqual(await counts(), [0, 0, 0]);
      const overdue = await expectOne(store, { transactionId: 'late' });
      await settle(store, await claimPoll(store), unknown('overdue'));
      await expectOne(store, { transactionId: 'not paid' });
      await settle(store, await claimPoll(store), { ...unknown('overdue'), result: 'pending' });
      for (let n = 0; n < 3; n += 1) await expectOne(store, { transactionId: `tx ${n}` });
      deepEqual(await counts(), [3, 1, 1]);
      await store.receive([
        fulfilling({ orderingKey: 'tx 0' }),
        fulfilling({ orderingKey: 'late' }),
      ]);
      equal((await stored(store, overdue)).state, 'fulfilled');
      deepEqual(await counts(), [2, 1, 0]);
    },
  },
  {
    title:
      'the operations change the state of an expectation exactly as EXPECTATION_TRANSITIONS lists',
    async run({ store }) {
      const found = new Set<string>();
      const { expectations } = store;
      let number = 0;
      /** Brings an expectation into a state, runs an operation, and notes the change. */
      const note = async (
        from: ExpectationState,
        by: string,
        act: (reference: string, tx: string) => Promise<unknown>,
      ): Promise<void> => {
        const tx = `tx ${(number += 1)}`;
        const one = await expectOne(store, { firstPollInMs: 0 });
        if (from === 'cancelled') await expectations.cancel('acme', one.reference);
        if (from === 'fulfilled') {
          await store.receive([
            fulfilling({ reference: one.reference, orderingKey: `${tx} other` }),
          ]);
        }
        if (from === 'overdue') await settle(store, await claimPoll(store), unknown('overdue'));
        await act(one.reference, tx);
        const { state } = await stored(store, one);
        if (state !== from) found.add(`${from} ${state} ${by}`);
        await expectations.cancel('acme', one.reference);
      };
      const poll = async (reference: string) => {
        await expectations.pollNow([{ company: 'acme', reference }], [0]);
        const all = await claimPolls(store);
        return all.find(({ expectation }) => expectation.reference === reference);
      };
      for (const from of ['waiting', 'overdue', 'fulfilled', 'cancelled'] as const) {
        await note(from, 'expect', (reference) => expectations.expect(expected({ reference })));
        await note(from, 'receive', (reference, tx) =>
          store.receive([fulfilling({ reference, orderingKey: tx })]),
        );
        await note(from, 'cancel', (reference) => expectations.cancel('acme', reference));
        await note(from, 'attach (another transaction)', (reference, tx) =>
          expectations.attach('acme', reference, tx),
        );
        await note(from, 'endRequest (cancelled)', async (reference) => {
          const started = await expectations.startRequest('acme', reference, 1000);
          const name = { company: 'acme', reference };
          if (started?.token) await expectations.endRequest(name, started.token, 'cancelled');
        });
        await note(from, 'settlePoll (schedule ended)', async (reference) => {
          const claimed = await poll(reference);
          if (claimed) await settle(store, claimed, unknown('overdue'));
        });
        await note(from, 'settlePoll (event)', async (reference, tx) => {
          const claimed = await poll(reference);
          if (claimed) await settleFound(store, claimed, tx);
        });
      }
      found.add('new waiting expect');
      const listed = EXPECTATION_TRANSITIONS.map(({ from, to, by }) => `${from} ${to} ${by}`);
      deepEqual([...found].toSorted(), listed.toSorted());
    },
  },
];
