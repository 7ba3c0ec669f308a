import { deepEqual, equal, rejects } from 'node:assert/strict';
import { historyOf, incoming, LEASE_MS, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

export const commitCases: readonly InboxContractCase[] = [
  {
    title: 'IN-22 commits the effect and the settlement together',
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
      deepEqual(await historyOf(other, event), [[1, 'done', null]]);
    },
  },
  {
    title:
      'IN-21 stores no effect and leaves the delivery as it was, if the work of a commit throws',
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
      deepEqual(await historyOf(store, event), []);
      equal((await store.complete(lease)).settled, true);
    },
  },
  {
    title: 'IN-13 refuses the commit of a stale holder, and stores no effect of it',
    needs: 'transactional',
    async run({ store, another, advance, effects }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      const event = incoming();
      await store.receive([event]);
      const stale = await worker.claimOne();
      await other.outlive(advance);
      const late = store.commit(stale, (tx) => effects!.write(tx, 'late'));
      await rejects(late, { code: 'lease_lost' });
      const held = (await other.claimSuspect(false))!;
      const staler = store.commit(stale, (tx) => effects!.write(tx, 'stale'));
      await rejects(staler, { code: 'lease_lost' });
      deepEqual(await effects!.read(), []);
      deepEqual(await states(store, event), { book: 'running 1' });
      await other.store.commit(held, (tx) => effects!.write(tx, 'held'));
      deepEqual(await effects!.read(), ['held']);
    },
  },
  {
    title: 'IN-13 accepts a commit that is ten leases late, if nobody took over',
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
    title: 'IN-21 refuses a second commit of one lease',
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
    title:
      'IN-16 makes the next held delivery of a key claimable when the running one is committed',
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
    title: 'IN-19 makes a suspect a normal delivery again when it is committed',
    needs: 'transactional',
    async run({ store, another, advance, effects }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      const event = incoming();
      await store.receive([event]);
      await worker.claimOne();
      await other.outlive(advance);
      const suspect = (await other.claimSuspect(false))!;
      await other.store.commit(suspect, (tx) => effects!.write(tx, 'done'));
      const selection = [{ company: 'acme', id: event.id, handlers: ['book'] }];
      await store.redrive(selection, { force: true, dueInMs: [0] });
      equal((await other.claimOne()).crashes, 0);
    },
  },
  {
    title: 'rejects commits if it is not transactional',
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
