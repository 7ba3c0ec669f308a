import { deepEqual, equal, ok } from 'node:assert/strict';
import { expectationEventId, POLL_HANDLER } from '../../inbox/store/expectation-store.js';
import type { ExpectationStore } from '../../inbox/store/inbox-store.js';
import { pruneAll, TestWorker, twoWorkers } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-fixtures.js';
import {
  expected,
  expectOne,
  fulfilling,
  references,
  stored,
  unknown,
} from './expectation-cases.js';

/** The schedule of polls, their results, and the end of expectations. */
export const pollCases: readonly InboxContractCase[] = [
  {
    title: 'EX-03 polls are due as scheduled, one at a time, and are never charged',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      const expectation = await expectOne(store, { firstPollInMs: 15_000 });
      deepEqual(await worker.claim([POLL_HANDLER]), []);
      const dueInMs = (await store.nextDueInMs([POLL_HANDLER]))!;
      ok(dueInMs > 5000 && dueInMs <= 15_000, `due in ${dueInMs} ms`);
      for (let poll = 1; poll <= 15; poll += 1) {
        await advance(15_000);
        const lease = await worker.claimOne(POLL_HANDLER);
        deepEqual([lease.company, lease.id], ['acme', expectationEventId(expectation.reference)]);
        deepEqual([lease.attempt, lease.crashes], [1, 0]);
        deepEqual(await other.claim([POLL_HANDLER]), []);
        const detail = `poll ${poll} ${'x'.repeat(2000)}`;
        const pending = { result: 'pending', detail, next: 15_000 } as const;
        equal((await other.store.expectations.settlePoll(lease, pending)).settled, true);
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
        deepEqual(await worker.claim([POLL_HANDLER]), []);
      }
      await advance(15_000);
      await store.expectations.settlePoll(await worker.claimOne(POLL_HANDLER), unknown('end'));
      const { state, nextPollAt } = await stored(store, expectation);
      deepEqual([state, nextPollAt], ['waiting', null]);
      equal(await store.nextDueInMs([POLL_HANDLER]), null);
    },
  },
  {
    title: 'EX-03 the poll of a dead worker runs again, and its lease is not valid any more',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      const expectation = await expectOne(store, { transactionId: 'tx' });
      const lost = await worker.claimOne(POLL_HANDLER);
      await other.declareOthersDead(advance);
      const settlePoll = (...call: Parameters<ExpectationStore['settlePoll']>) =>
        store.expectations.settlePoll(...call);
      equal((await settlePoll(lost, unknown('overdue'))).settled, false);
      const again = (await other.claimSuspect(false, [POLL_HANDLER]))!;
      deepEqual([again.id, again.crashes], [lost.id, 1]);
      ok(again.token > lost.token);
      equal((await settlePoll(lost, unknown('overdue'))).settled, false);
      deepEqual((await stored(store, expectation)).lastPoll, null);
      equal((await settlePoll(again, unknown(1000))).settled, true);
      await advance(2000);
      equal((await other.claimOne(POLL_HANDLER)).crashes, 0);
      // The next worker dies too, and a webhook arrives for the suspect.
      const last = await TestWorker.start(await another());
      await last.declareOthersDead(advance);
      await store.receive([fulfilling({ orderingKey: 'tx' })]);
      equal(await last.claimSuspect(true, [POLL_HANDLER]), null);
      deepEqual(await last.claim([POLL_HANDLER]), []);
      equal((await last.heartbeat()).suspects, false);
      equal(await store.expectations.pollNow([expectation], [0]), 1);
      equal((await last.claimOne(POLL_HANDLER)).crashes, 0);
    },
  },
  {
    title: 'EX-06 a contradiction is recorded, and changes nothing else',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const expectation = await expectOne(store, { transactionId: 'tx' });
      const lease = await worker.claimOne(POLL_HANDLER);
      const event = fulfilling({ orderingKey: 'tx' });
      await store.receive([event]);
      const { expectations } = await another();
      const detail = `it now reads declined ${'x'.repeat(2000)}`;
      await expectations.settlePoll(lease, { result: 'contradiction', detail, next: 'overdue' });
      const found = await stored(store, expectation);
      deepEqual([found.state, found.fulfilled?.eventId], ['fulfilled', event.id]);
      deepEqual([found.polls, found.lastPoll?.result], [1, 'contradiction']);
      ok(
        found.contradiction!.startsWith('it now reads declined') &&
          found.contradiction!.length <= 1000,
      );
      equal(await expectations.pollNow([expectation], [0]), 1);
      await expectations.settlePoll(await worker.claimOne(POLL_HANDLER), unknown(0, '404'));
      const { lastPoll, contradiction, polls } = await stored(store, expectation);
      deepEqual([polls, lastPoll?.detail, contradiction], [2, '404', found.contradiction]);
      deepEqual(await worker.claim([POLL_HANDLER]), []);
    },
  },
  {
    title: 'EX-11 pollNow makes polls due, also of ended expectations, but not of cancelled ones',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store);
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
      const leases = await worker.claim([POLL_HANDLER]);
      const ids = ['fulfilled', 'waiting'].map(expectationEventId);
      deepEqual(leases.map(({ id }) => id).toSorted(), ids);
      equal(await expectations.pollNow([waiting, fulfilled], [0, 0]), 0);
      for (const lease of leases) await expectations.settlePoll(lease, unknown(60_000));
      const [first, second] = [await stored(store, waiting), await stored(store, fulfilled)];
      deepEqual([first.state, first.polls, first.nextPollAt === null], ['waiting', 1, false]);
      deepEqual([second.state, second.polls, second.nextPollAt], ['fulfilled', 1, null]);
      await advance(11_000);
      equal((await worker.claimOne(POLL_HANDLER)).id, expectationEventId('soon'));
    },
  },
  {
    title: 'EX-03 a paused poll handler delays polls, and webhooks still fulfil',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const paid = await expectOne(store, { transactionId: 'tx' });
      const open = await expectOne(store);
      for (const name of [POLL_HANDLER, '*']) {
        await (await another()).pause(name, true);
        deepEqual(await worker.claim([POLL_HANDLER]), []);
        equal(await store.nextDueInMs([POLL_HANDLER]), null);
        await store.receive([fulfilling({ orderingKey: 'tx' })]);
        equal((await stored(store, paid)).state, 'fulfilled');
        await store.pause(name, false);
      }
      const { id } = await worker.claimOne(POLL_HANDLER);
      equal(id, expectationEventId(open.reference));
    },
  },
  {
    title: 'EX-07 counts() returns how many expectations are waiting and overdue',
    async run({ store, another }) {
      const counts = async () => {
        const { waiting, overdue } = await (await another()).expectations.counts();
        return [waiting.count, waiting.more, overdue.count, overdue.more];
      };
      deepEqual(await counts(), [0, false, 0, false]);
      const worker = await TestWorker.start(store);
      const overdue = await expectOne(store, { transactionId: 'late' });
      const lease = await worker.claimOne(POLL_HANDLER);
      for (let n = 0; n < 3; n += 1) await expectOne(store, { transactionId: `tx ${n}` });
      const poll = { result: 'unknown', detail: null, next: 'overdue' } as const;
      await store.expectations.settlePoll(lease, poll);
      deepEqual(await counts(), [3, false, 1, false]);
      await store.receive([
        fulfilling({ orderingKey: 'tx 0' }),
        fulfilling({ orderingKey: 'late' }),
      ]);
      equal((await stored(store, overdue)).state, 'fulfilled');
      deepEqual(await counts(), [2, false, 0, false]);
    },
  },
  {
    title: 'prune deletes an ended expectation with its tombstone, and keeps a waiting one',
    async run({ store, advance }) {
      const open = await expectOne(store);
      const ended = await expectOne(store);
      await store.expectations.cancel('acme', ended.reference);
      const late = await expectOne(store, { transactionId: 'tx' });
      await store.receive([fulfilling({ orderingKey: 'tx' })]);
      await advance(5000);
      await pruneAll(store, 1000, 100_000);
      equal((await stored(store, ended)).state, 'cancelled');
      equal((await stored(store, late)).fulfilled?.by, 'webhook');
      // Its delivery is deleted, so it cannot be polled again.
      equal(await store.expectations.pollNow([late], [0]), 0);
      await pruneAll(store, 1000, 1000);
      deepEqual(await references(store), [open.reference]);
      equal(await store.expectations.find('acme', ended.reference), undefined);
      equal(await store.expectations.expect(ended), true);
      await store.receive([fulfilling({ orderingKey: 'tx' })]);
      const worker = await TestWorker.start(store);
      equal((await worker.claim([POLL_HANDLER])).length, 2);
    },
  },
];
