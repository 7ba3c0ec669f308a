import { deepEqual, equal, ok } from 'node:assert/strict';
import { DELIVERY_TRANSITIONS } from '../../inbox/store/store-operations.js';
import { incoming, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';
import { Interleaving } from './interleaving.js';
import { Transitions } from './transitions.js';

const selection = (id: string, handlers: readonly string[] = ['book']) => [
  { company: 'acme', id, handlers },
];

export const transitionCases: readonly InboxContractCase[] = [
  {
    title: 'changes the state of a delivery by every documented transition',
    async run({ store, another, advance }) {
      const watched = new Transitions(store);
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      const during: Transitions['during'] = (operation, run) => watched.during(operation, run);
      const assign = { worker: worker.id, handlers: ['book'] };
      const [event, assigned] = [incoming(), incoming({ assign })];
      const claim = () => during('claim', () => worker.claimOne());
      const redrive = (id: string, force = false, handlers = ['book']) =>
        during('redrive', () => store.redrive(selection(id, handlers), { force, dueInMs: [0] }));

      await during('receive', () => store.receive([event, assigned]));
      await during('heartbeat', () => other.heartbeat());
      await during('release', async () => store.release(await claim()));
      const failed = await claim();
      await during('fail', () => store.fail(failed, { error: 'no', retryInMs: 0 }));
      const dead = await claim();
      await during('fail', () => store.fail(dead, { error: 'no', retryInMs: null }));
      await redrive(event.id);
      const done = await claim();
      await during('complete', () => store.complete(done));
      await redrive(event.id, true);
      await during('skip', () => store.skip(selection(event.id)));
      await redrive(event.id);
      const again = await claim();
      await during('fail', () => store.fail(again, { error: 'no', retryInMs: null }));
      await during('skip', () => store.skip(selection(event.id)));
      // The worker dies with what was assigned to it.
      await during('heartbeat', () => other.outlive(advance));
      const suspect = await during('claimSuspect', () => other.claimSuspect(false));
      equal(suspect?.id, assigned.id);
      const { transactional } = store.capabilities;
      if (transactional) await during('commit', () => other.store.commit(suspect, () => {}));
      else await during('complete', () => other.store.complete(suspect));
      await redrive(event.id, false, ['gone']);
      await redrive(assigned.id, false, ['gone']);
      const gone = await during('claim', () => other.claim(['gone'], 1));
      await during('fail', () => store.fail(gone[0]!, { error: 'no', retryInMs: null }));
      equal(await during('forgetHandler', () => store.forgetHandler('gone')), 2);

      const expected = DELIVERY_TRANSITIONS.filter(({ by }) => transactional || by !== 'commit');
      const names = expected.map(({ from, to, by }) => `${from} > ${to} by ${by}`);
      ok(names.length > 15);
      deepEqual([...watched.seen].toSorted(), names.toSorted());
    },
  },
  ...[1, 2, 3].map((seed): InboxContractCase => ({
    title: `IN-16 IN-35 finishes everything after 120 operations of two processes in any order (seed ${seed})`,
    async run({ store, another, advance }) {
      await new Interleaving([store, await another()], advance, seed).run(120);
    },
  })),
];
