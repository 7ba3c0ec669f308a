import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import {
  attemptsOf,
  incoming,
  LEASE_MS,
  pruneAll,
  REDRIVE_FORCED,
  select,
  states,
  TestWorker,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

const NOT_SETTLED = { settled: false, nextDue: false };

/** Who may settle a delivery, with and without a transaction of the application. */
export const fencingCases: readonly InboxContractCase[] = [
  {
    title: 'IN-13 complete, fail and release of a lost lease change nothing',
    needs: 'shared',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      const event = incoming();
      await store.receive([event]);
      const stale = await worker.claimOne();
      await other.declareOthersDead(advance);
      const settlesNothing = async () => {
        deepEqual(await store.complete(stale), NOT_SETTLED);
        deepEqual(await store.fail(stale, { error: 'stale', retryInMs: null }), NOT_SETTLED);
        deepEqual(await store.release(stale), NOT_SETTLED);
      };
      await settlesNothing();
      deepEqual(await states(store, event), { book: 'pending 0' });
      const current = (await other.claimSuspect())!;
      ok(current.token > stale.token);
      await settlesNothing();
      deepEqual(await states(store, event), { book: 'running 1' });
      equal((await other.store.complete(current)).settled, true);
      deepEqual(await other.store.complete(current), NOT_SETTLED);
      await settlesNothing();
      deepEqual(await states(store, event), { book: 'done 1' });
    },
  },
  {
    title:
      'IN-13 the late result of a failed attempt changes nothing, even while the next attempt runs',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const late = await worker.claimOne();
      await store.fail(late, { error: 'handler_timeout', retryInMs: 0 });
      const settlesNothing = async () => {
        deepEqual(await store.complete(late), NOT_SETTLED);
        deepEqual(await store.fail(late, { error: 'late', retryInMs: null }), NOT_SETTLED);
        deepEqual(await store.release(late), NOT_SETTLED);
      };
      await settlesNothing();
      deepEqual(await states(store, event), { book: 'pending 1' });
      const current = await worker.claimOne();
      ok(current.token > late.token);
      await settlesNothing();
      deepEqual(await states(store, event), { book: 'running 2' });
      equal((await store.complete(current)).settled, true);
      await settlesNothing();
      deepEqual(await states(store, event), { book: 'done 2' });
    },
  },
  {
    title:
      'IN-13 ten lease times after its lease has ended, a worker can settle deliveries that no other worker has claimed',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming(), incoming(), incoming()]);
      const [a, b, c] = await worker.claim();
      await advance(10 * LEASE_MS);
      equal((await store.complete(a!)).settled, true);
      equal((await store.fail(b!, { error: 'no', retryInMs: 0 })).settled, true);
      equal((await store.release(c!)).settled, true);
    },
  },
  {
    title: 'IN-13 the lease of an event that was deleted and received again settles nothing',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const old = await worker.claimOne();
      await store.complete(old);
      await advance(2000);
      await pruneAll(store, 1000, 1000);
      equal((await store.receive([event]))[0]!.outcome, 'stored');
      const lease = await worker.claimOne();
      deepEqual(await store.complete(old), NOT_SETTLED);
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-13 a lease with another event, handler or token settles nothing',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ handlers: ['book', 'mail'] });
      await store.receive([event, incoming({ id: event.id, company: 'umbrella' })]);
      const lease = (await worker.claim()).find(({ company }) => company === 'acme')!;
      for (const changed of [
        { handler: 'mail' },
        { handler: 'none' },
        { token: lease.token + 1 },
        { token: lease.token - 1 },
        { id: 'no such event', seq: lease.seq + 1000 },
      ]) {
        deepEqual(await store.complete({ ...lease, ...changed }), NOT_SETTLED);
      }
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-27 running deliveries of a paused handler can be settled',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming(), incoming()]);
      const [a, b] = await worker.claim();
      await store.pause('book', true);
      equal((await store.complete(a!)).settled, true);
      equal((await store.fail(b!, { error: 'no', retryInMs: 0 })).settled, true);
      equal((await worker.claim()).length, 0);
      await store.pause('book', false);
      ok(await worker.claimOne());
    },
  },
  {
    title: 'IN-22 a commit stores its effect and settles the delivery in one transaction',
    needs: 'transactional',
    async run({ store, another, effects }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      const lease = await worker.claimOne();
      const result = await store.commit(lease, (tx) => {
        const written = effects!.write(tx, 'booked');
        return written instanceof Promise ? written.then(() => 42) : 42;
      });
      deepEqual(result, { result: 42, nextDue: false });
      deepEqual(await effects!.read(), ['booked']);
      const other = await another();
      deepEqual(await states(other, event), { book: 'done 1' });
      equal((await store.complete(lease)).settled, false);
      equal((await store.fail(lease, { error: 'after commit', retryInMs: 0 })).settled, false);
      equal((await store.release(lease)).settled, false);
      deepEqual(await states(other, event), { book: 'done 1' });
      deepEqual(await attemptsOf(other, event), [[1, 'done', null]]);
    },
  },
  {
    title: 'IN-21 a commit whose function throws stores no effect and leaves the delivery running',
    needs: 'transactional',
    async run({ store, effects }) {
      const worker = await TestWorker.start(store);
      const event = incoming({ orderingKey: 'k' });
      await store.receive([event]);
      const lease = await worker.claimOne();
      const failing = store.commit(lease, (tx) => {
        const written = effects!.write(tx, 'booked');
        const fail = () => {
          throw new RangeError('the work failed');
        };
        return written instanceof Promise ? written.then(fail) : fail();
      });
      await rejects(failing, { name: 'RangeError', message: 'the work failed' });
      deepEqual(await effects!.read(), []);
      deepEqual(await states(store, event), { book: 'running 1' });
      deepEqual(await attemptsOf(store, event), []);
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-13 a commit of a lost lease is rejected and stores no effect',
    needs: 'transactional',
    async run({ store, another, advance, effects }) {
      const [worker, other] = await twoWorkers({ store, another });
      const event = incoming();
      await store.receive([event]);
      const stale = await worker.claimOne();
      await other.declareOthersDead(advance);
      const late = store.commit(stale, (tx) => effects!.write(tx, 'late'));
      await rejects(late, { code: 'lease_lost' });
      const current = (await other.claimSuspect())!;
      const stillLate = store.commit(stale, (tx) => effects!.write(tx, 'stale'));
      await rejects(stillLate, { code: 'lease_lost' });
      deepEqual(await effects!.read(), []);
      deepEqual(await states(store, event), { book: 'running 1' });
      await other.store.commit(current, (tx) => effects!.write(tx, 'current'));
      deepEqual(await effects!.read(), ['current']);
    },
  },
  {
    title:
      'IN-13 ten lease times after its lease has ended, a worker can commit deliveries that no other worker has claimed',
    needs: 'transactional',
    async run({ store, advance, effects }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming()]);
      const lease = await worker.claimOne();
      await advance(10 * LEASE_MS);
      await store.commit(lease, (tx) => effects!.write(tx, 'late'));
      deepEqual(await effects!.read(), ['late']);
    },
  },
  {
    title: 'IN-21 a second commit of one lease is rejected',
    needs: 'transactional',
    async run({ store, effects }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming()]);
      const lease = await worker.claimOne();
      await store.commit(lease, (tx) => effects!.write(tx, 'once'));
      const again = store.commit(lease, (tx) => effects!.write(tx, 'twice'));
      await rejects(again, { code: 'lease_lost' });
      deepEqual(await effects!.read(), ['once']);
    },
  },
  {
    title: 'IN-16 the next waiting delivery of a key becomes claimable after a commit',
    needs: 'transactional',
    async run({ store, effects }) {
      const worker = await TestWorker.start(store);
      const events = [incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })];
      await store.receive(events);
      const [lease] = await worker.claim();
      equal((await worker.claim()).length, 0);
      const first = await store.commit(lease!, (tx) => effects!.write(tx, 'first'));
      equal(first.nextDue, true);
      const next = await worker.claimOne();
      const second = await store.commit(next, (tx) => effects!.write(tx, 'second'));
      equal(second.nextDue, false);
      deepEqual(await effects!.read(), ['first', 'second']);
    },
  },
  {
    title: 'IN-19 a committed suspect is a normal delivery again',
    needs: 'transactional',
    async run({ store, another, advance, effects }) {
      const [worker, other] = await twoWorkers({ store, another });
      const event = incoming();
      await store.receive([event]);
      await worker.claimOne();
      await other.declareOthersDead(advance);
      const suspect = (await other.claimSuspect())!;
      await other.store.commit(suspect, (tx) => effects!.write(tx, 'done'));
      const selection = select(event.id);
      await store.redrive(selection, REDRIVE_FORCED);
      equal((await other.claimOne()).crashes, 0);
    },
  },
  {
    title: 'a store that is not transactional rejects commits',
    async run({ store }) {
      if (store.capabilities.transactional) return;
      const worker = await TestWorker.start(store);
      await store.receive([incoming()]);
      const lease = await worker.claimOne();
      let ran = false;
      const commit = store.commit(lease, () => {
        ran = true;
      });
      await rejects(commit, { code: 'commit_unsupported' });
      equal(ran, false);
      equal((await store.complete(lease)).settled, true);
    },
  },
];
