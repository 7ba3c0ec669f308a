import { deepEqual, equal, rejects } from 'node:assert/strict';
import { claimOne, incoming, LEASE_MS, states } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

export const commitCases: readonly InboxContractCase[] = [
  {
    title: '22: commits effect and settlement together',
    needs: 'transactional',
    async run({ store, another, effects }) {
      const event = incoming();
      await store.receive([event]);
      const lease = await claimOne(store);
      const result = await store.commit(lease, (tx) => {
        const written = effects!.write(tx, 'booked');
        return written instanceof Promise ? written.then(() => 42) : 42;
      });
      equal(result, 42);
      deepEqual(await effects!.read(), ['booked']);
      const other = await another();
      deepEqual(await states(other, event), { book: 'done 1' });
      equal(await store.complete(lease), false);
      equal(await store.fail(lease, { error: 'after commit', retryInMs: 0 }), false);
      deepEqual(await states(other, event), { book: 'done 1' });
    },
  },
  {
    title: '21: leaves no effect, and the delivery as it was, where the work of a commit throws',
    needs: 'transactional',
    async run({ store, effects }) {
      const event = incoming();
      await store.receive([event]);
      const lease = await claimOne(store);
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
      equal(await store.complete(lease), true);
    },
  },
  {
    title: '13: refuses the commit of a stale holder, and leaves no effect of it',
    needs: 'transactional',
    async run({ store, another, advance, effects }) {
      const event = incoming();
      await store.receive([event]);
      const stale = await claimOne(store);
      await advance(LEASE_MS + 1000);
      const late = store.commit(stale, (tx) => effects!.write(tx, 'late'));
      await rejects(late, { code: 'lease_lost' });
      const other = await another();
      const held = await claimOne(other);
      const staler = store.commit(stale, (tx) => effects!.write(tx, 'stale'));
      await rejects(staler, { code: 'lease_lost' });
      deepEqual(await effects!.read(), []);
      await other.commit(held, (tx) => effects!.write(tx, 'held'));
      deepEqual(await effects!.read(), ['held']);
    },
  },
  {
    title: '21: refuses a second commit of one lease',
    needs: 'transactional',
    async run({ store, effects }) {
      await store.receive([incoming()]);
      const lease = await claimOne(store);
      await store.commit(lease, (tx) => effects!.write(tx, 'once'));
      const again = store.commit(lease, (tx) => effects!.write(tx, 'twice'));
      await rejects(again, { code: 'lease_lost' });
      deepEqual(await effects!.read(), ['once']);
    },
  },
  {
    title: 'says that it cannot commit, where it cannot',
    async run({ store }) {
      if (store.capabilities.transactional) return;
      await store.receive([incoming()]);
      const lease = await claimOne(store);
      let ran = false;
      const commit = store.commit(lease, () => {
        ran = true;
      });
      await rejects(commit, { code: 'commit_unsupported' });
      equal(ran, false);
      equal(await store.complete(lease), true);
    },
  },
];
