import { deepEqual, equal, ok } from 'node:assert/strict';
import type {
  HandlerPause,
  InboxStore,
  IncomingEvent,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  handlersOf,
  incoming,
  REDRIVE_FORCED,
  REDRIVE_NOW,
  select,
  states,
  TestWorker,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** An event whose delivery to `book` is dead, and to `mail` done. */
async function deadAndDone(worker: TestWorker): Promise<IncomingEvent> {
  const { store } = worker;
  const event = incoming({ handlers: ['book', 'mail'] });
  await store.receive([event]);
  await store.fail(await worker.claimOne('book'), { error: 'no', retryInMs: null });
  await store.complete(await worker.claimOne('mail'));
  return event;
}

/** The actions of operators: redrive, skip and pause. */
export const operatorCases: readonly InboxContractCase[] = [
  {
    title:
      'IN-20 a redriven dead delivery starts at attempt 1, and a second redrive changes nothing',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const other = await another();
      const { id } = await deadAndDone(worker);
      const selection = select(id, 'book', 'mail');
      equal(await other.redrive(selection, REDRIVE_NOW), 1);
      await store.redrive(selection, REDRIVE_NOW);
      deepEqual(await states(store, { id }), { book: 'pending 0', mail: 'done 1' });
      const [delivery] = (await store.find('acme', id))!.deliveries;
      ok(delivery!.dueAt instanceof Date);
      equal(delivery!.finishedAt, null);
      const again = await worker.claimOne();
      equal(again.attempt, 1);
      equal(await store.redrive(selection, REDRIVE_NOW), 0);
      deepEqual(await states(store, { id }), { book: 'running 1', mail: 'done 1' });
      equal((await store.complete(again)).settled, true);
      equal(await store.redrive(selection, REDRIVE_NOW), 0);
    },
  },
  {
    title: 'IN-20 a redrive runs a done delivery again only if the redrive is forced',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const { id } = await deadAndDone(worker);
      equal(await store.redrive(select(id, 'mail'), REDRIVE_NOW), 0);
      equal(await store.redrive(select(id, 'mail'), REDRIVE_FORCED), 1);
      equal((await worker.claimOne('mail')).attempt, 1);
      equal(await store.redrive(select(id, 'mail'), REDRIVE_FORCED), 0);
    },
  },
  {
    title:
      'OP-04 a redrive with unchangedSince ignores deliveries that were attempted or skipped since then',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const { id } = await deadAndDone(worker);
      await advance(10);
      await store.records.put({ kind: 'job', key: 'start', body: '' });
      const unchangedSince = (await store.records.list('job', 1))[0]!.changedAt;
      await advance(10);
      const redrive = (eventId: string) =>
        store.redrive(select(eventId, 'book', 'mail'), { ...REDRIVE_FORCED, unchangedSince });
      equal(await redrive((await deadAndDone(worker)).id), 0);
      equal(await redrive(id), 2);
      equal(await redrive(id), 2);
      await store.fail(await worker.claimOne('book'), { error: 'no', retryInMs: null });
      await store.fail(await worker.claimOne('mail'), { error: 'no', retryInMs: 600_000 });
      equal(await redrive(id), 0);
      deepEqual(await states(store, { id }), { book: 'dead 1', mail: 'pending 1' });
      equal(await store.redrive(select(id, 'book'), REDRIVE_NOW), 1);
      equal(await store.skip(select(id, 'book')), 1);
      equal(await redrive(id), 0);
    },
  },
  {
    title: 'IN-20 a redrive adds a delivery for a new handler and ignores unknown events',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const { id } = await deadAndDone(worker);
      const selections = [...select(id, 'audit', 'audit'), ...select('no such event', 'audit')];
      equal(await store.redrive(selections, { force: false, dueInMs: [0, 0] }), 1);
      deepEqual(await states(store, { id }), {
        audit: 'pending 0',
        book: 'dead 1',
        mail: 'done 1',
      });
      equal((await worker.claimOne('audit')).id, id);
      equal(await store.find('acme', 'no such event'), undefined);
      equal(await store.redrive([{ ...selections[0]!, company: 'umbrella' }], REDRIVE_NOW), 0);
    },
  },
  {
    title: 'IN-20 a redrive makes each delivery due after its own dueInMs',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const events = [
        await deadAndDone(worker),
        await deadAndDone(worker),
        await deadAndDone(worker),
      ];
      const selections = events.flatMap(({ id }, n) => select(id, n === 2 ? 'audit' : 'book'));
      equal(await store.redrive(selections, { force: false, dueInMs: [0, 30_000, 30_000] }), 3);
      equal((await worker.claim(['book', 'audit'])).length, 1);
      await advance(31_000);
      equal((await worker.claim(['book', 'audit'])).length, 2);
    },
  },
  {
    title: 'IN-20 a redrive makes a failed delivery due immediately and keeps its attempts',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 600_000 });
      equal(await store.redrive(select(event.id, 'book'), REDRIVE_NOW), 1);
      equal((await worker.claimOne()).attempt, 2);
    },
  },
  {
    title: 'IN-20 IN-35 a redrive makes a pending delivery due earlier, never later',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      const redrive = (dueInMs: number) =>
        store.redrive(select(event.id, 'book'), { force: true, dueInMs: [dueInMs] });
      await store.receive([event]);
      // A delivery that is due counts as redriven, and stays due.
      equal(await redrive(600_000), 1);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 60_000 });
      equal(await redrive(600_000), 1);
      equal((await worker.claim()).length, 0);
      await advance(61_000);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 600_000 });
      equal(await redrive(60_000), 1);
      equal((await worker.claim()).length, 0);
      await advance(61_000);
      equal((await worker.claimOne()).attempt, 3);
    },
  },
  {
    title: 'IN-20 a redrive ignores a tombstone, which has no body',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = incoming();
      await store.receive([event]);
      await store.complete(await worker.claimOne());
      await advance(2000);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 });
      equal(await store.redrive(select(event.id, 'book', 'mail'), REDRIVE_FORCED), 0);
      equal((await worker.claim(['book', 'mail'])).length, 0);
    },
  },
  {
    title:
      'IN-20 skip() changes only pending and dead deliveries, and a redrive makes skipped deliveries pending',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const { id } = await deadAndDone(worker);
      const [pending, running] = [incoming(), incoming({ handlers: ['print'] })];
      await store.receive([pending, running]);
      await worker.claimOne('print');
      const selections = [
        ...select(id, 'book', 'mail', 'none'),
        ...select(pending.id, 'book', 'book'),
        ...select(running.id, 'print'),
        ...select('no such event', 'book'),
      ];
      equal(await store.skip(selections), 2);
      equal(await store.skip(selections), 0);
      deepEqual(await states(store, { id }), { book: 'skipped 1', mail: 'done 1' });
      deepEqual(await states(store, pending), { book: 'skipped 0' });
      deepEqual(await states(store, running), { print: 'running 1' });
      const [skipped] = (await store.find('acme', pending.id))!.deliveries;
      ok(skipped!.finishedAt instanceof Date);
      equal(skipped!.dueAt, null);
      equal((await worker.claim()).length, 0);
      equal(await store.redrive([selections[1]!], REDRIVE_NOW), 1);
      equal((await worker.claimOne()).id, pending.id);
    },
  },
  {
    title: 'IN-27 a paused handler is paused in every process until it is resumed',
    async run({ store, another }) {
      const [worker, other] = await twoWorkers({ store, another });
      await store.receive([incoming({ handlers: ['book', 'mail'] })]);
      await store.pause('book', true);
      await store.pause('book', true);
      deepEqual(await pausedOf(other.store), ['book']);
      deepEqual(handlersOf(await other.claim(['book', 'mail'])), ['mail']);
      equal((await worker.claim()).length, 0);
      equal(await other.store.nextDueInMs(['book', 'mail']), null);
      await other.store.pause('book', false);
      equal((await worker.claim()).length, 1);
      deepEqual((await store.stats()).paused, []);
    },
  },
  {
    title: 'IN-27 a paused inbox leases no delivery and still stores received events',
    async run({ store, another }) {
      const [worker, other] = await twoWorkers({ store, another });
      await store.pause('*', true);
      await store.pause('mail', true);
      const receipts = await store.receive([incoming({ handlers: ['book', 'mail'] })]);
      equal(receipts[0]?.outcome, 'stored');
      deepEqual(await pausedOf(other.store), ['*', 'mail']);
      equal((await worker.claim()).length, 0);
      equal((await other.claim(['book', 'mail'])).length, 0);
      await store.pause('*', false);
      deepEqual(handlersOf(await other.claim(['book', 'mail'])), ['book']);
    },
  },
  {
    title:
      'OP-42 a pause has an operator, a start, a reason and an end, and a later pause replaces the earlier pause',
    async run({ store, another, advance }) {
      await store.pause('book', true);
      const [{ pausedAt, ...facts }] = (await store.stats()).paused as [HandlerPause];
      deepEqual(facts, { handler: 'book', who: null, reason: null, until: null });
      await advance(5000);
      const until = new Date(pausedAt.getTime() + 3_600_000);
      await store.pause('book', true, { who: 'ann\0', reason: 'ledger \ud800', until });
      const [{ pausedAt: later, ...changed }] = (await (await another()).stats()).paused as [
        HandlerPause,
      ];
      deepEqual(changed, { handler: 'book', who: 'ann\0', reason: 'ledger \ud800', until });
      ok(later.getTime() - pausedAt.getTime() >= 4900);
    },
  },
  {
    title: 'OP-42 the first heartbeat of any process after the end of a pause ends the pause',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      await store.receive([incoming({ handlers: ['book', 'mail'] })]);
      await store.pause('mail', true);
      await store.pause('book', true);
      const [{ pausedAt }] = (await store.stats()).paused as [HandlerPause];
      await store.pause('book', true, { until: new Date(pausedAt.getTime() + 10_000) });
      await store.heartbeat(worker.id);
      await advance(5000);
      await store.heartbeat(worker.id);
      deepEqual(await pausedOf(store), ['book', 'mail']);
      equal((await worker.claim()).length, 0);
      await advance(6000);
      await other.store.heartbeat(other.id);
      deepEqual(await pausedOf(store), ['mail']);
      deepEqual(handlersOf(await worker.claim(['book', 'mail'])), ['book']);
    },
  },
];

async function pausedOf(store: InboxStore): Promise<string[]> {
  return (await store.stats()).paused.map(({ handler }) => handler);
}
