import { deepEqual, equal, ok } from 'node:assert/strict';
import type {
  ClaimedDelivery,
  IncomingEvent,
  StoreReceipt,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  attemptsOf,
  handlersOf,
  incoming,
  LEASE_MS,
  REDRIVE_FORCED,
  select,
  states,
  TestWorker,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** An event for a worker with a free slot for each of its handlers. */
function assigned(worker: TestWorker, event: Partial<IncomingEvent> = {}): IncomingEvent {
  const { handlers = ['book'] } = event;
  return incoming({ assign: { workerId: worker.id, handlers }, ...event });
}

async function receiveOne(worker: TestWorker, event: IncomingEvent): Promise<StoreReceipt> {
  const [receipt] = await worker.store.receive([event]);
  equal(receipt!.outcome, 'stored');
  return receipt!;
}

/** Receives an event, and returns whether its only delivery was assigned. */
async function isAssigned(worker: TestWorker, event: IncomingEvent): Promise<boolean> {
  const { claimed, pending } = await receiveOne(worker, event);
  equal(claimed.length + (pending ? 1 : 0), 1);
  const expected = pending ? 'pending 0' : 'running 1';
  deepEqual(Object.values(await states(worker.store, event)), [expected]);
  return !pending;
}

/** Deliveries that `receive` assigns to the receiving worker, so that they need no claim. */
export const assignCases: readonly InboxContractCase[] = [
  {
    title: 'a delivery that is assigned on receipt is running, exactly as after a claim',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const event = assigned(worker, { orderingKey: 'k' });
      const { claimed, pending } = await receiveOne(worker, event);
      equal(pending, false);
      equal(claimed.length, 1);
      const [lease] = claimed as [ClaimedDelivery];
      const { company, id, handler, attempt, crashes, ageMs } = lease;
      deepEqual([company, id, handler, attempt, crashes], ['acme', event.id, 'book', 1, 0]);
      ok(ageMs >= 0 && ageMs < 30_000);
      const found = (await store.find('acme', event.id))!;
      deepEqual(lease.receivedAt, found.receivedAt);
      deepEqual(await states(await another(), event), { book: 'running 1' });
      equal((await worker.claim()).length, 0);
      deepEqual(await store.complete(lease), { settled: true, nextDue: false });
      deepEqual(await attemptsOf(store, event), [[1, 'done', null]]);
      equal((await store.complete(lease)).settled, false);
    },
  },
  {
    title: 'receive() assigns only the handlers of the event for which the worker has a free slot',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const assign = { workerId: worker.id, handlers: ['mail', 'print'] };
      const event = incoming({ handlers: ['book', 'mail'], assign });
      const { claimed, pending } = await receiveOne(worker, event);
      equal(pending, true);
      deepEqual(handlersOf(claimed), ['mail']);
      deepEqual(await states(store, event), { book: 'pending 0', mail: 'running 1' });
      equal((await worker.claimOne('book')).id, event.id);
      const both = assigned(worker, { handlers: ['book', 'mail'] });
      equal((await receiveOne(worker, both)).claimed.length, 2);
    },
  },
  {
    title: 'IN-16 receive() assigns nothing while a delivery of the ordering key runs',
    async run({ store, another }) {
      const [worker, other] = await twoWorkers({ store, another });
      const [a, b] = [
        assigned(worker, { orderingKey: 'k' }),
        assigned(other, { orderingKey: 'k' }),
      ];
      const [lease] = (await receiveOne(worker, a)).claimed;
      equal(await isAssigned(other, b), false);
      // Another handler, company or key is free, and so is an event without a key.
      ok(await isAssigned(worker, assigned(worker, { orderingKey: 'k', handlers: ['mail'] })));
      ok(await isAssigned(worker, assigned(worker, { orderingKey: 'k', company: 'umbrella' })));
      ok(await isAssigned(worker, assigned(worker, { orderingKey: 'l' })));
      ok(await isAssigned(worker, assigned(worker)));
      await store.complete(lease!);
      equal((await other.claimOne()).id, b.id);
    },
  },
  {
    title: 'IN-16 receive() assigns nothing while a delivery of the ordering key waits or is due',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = () => assigned(worker, { orderingKey: 'k' });
      const [a, b] = [incoming({ orderingKey: 'k' }), event()];
      await store.receive([a]);
      equal(await isAssigned(worker, b), false);
      const lease = await worker.claimOne();
      equal(lease.id, a.id);
      equal((await worker.claim()).length, 0);
      // `b` waits now. It becomes claimable when the running delivery is settled.
      deepEqual(await store.fail(lease, { error: 'no', retryInMs: null }), {
        settled: true,
        nextDue: true,
      });
      equal(await isAssigned(worker, event()), false);
    },
  },
  {
    title:
      'IN-16 receive() assigns no delivery that would overtake an earlier event of the same call',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const [first, second] = [
        incoming({ orderingKey: 'k' }),
        assigned(worker, { orderingKey: 'k' }),
      ];
      const receipts = await store.receive([first, second]);
      deepEqual(
        receipts.map(({ claimed }) => claimed.length),
        [0, 0],
      );
      equal((await worker.claimOne()).id, first.id);
    },
  },
  {
    title:
      'IN-16 receive() assigns a delivery if no other delivery of the ordering key is running or due',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = () => assigned(worker, { orderingKey: 'k' });
      const [retried] = (await receiveOne(worker, event())).claimed;
      await store.fail(retried!, { error: 'no', retryInMs: 60_000 });
      const [done] = (await receiveOne(worker, event())).claimed;
      ok(done, 'a retry that is not due yet does not keep its key busy');
      await store.complete(done);
      const [dead] = (await receiveOne(worker, event())).claimed;
      await store.fail(dead!, { error: 'no', retryInMs: null });
      const [last] = (await receiveOne(worker, event())).claimed;
      await store.complete(last!);
      await advance(61_000);
      equal(await isAssigned(worker, event()), false);
    },
  },
  {
    title: 'IN-19 receive() assigns nothing while a suspect of the ordering key is due',
    needs: 'shared',
    async run({ store, another, advance }) {
      const [worker, observer] = [
        await TestWorker.start(store),
        await TestWorker.start(await another()),
      ];
      await receiveOne(worker, assigned(worker, { orderingKey: 'k' }));
      await observer.declareOthersDead(advance);
      equal(await isAssigned(observer, assigned(observer, { orderingKey: 'k' })), false);
    },
  },
  {
    title: 'IN-27 receive() assigns nothing to a paused handler',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const other = await another();
      for (const paused of ['book', '*']) {
        await other.pause(paused, true);
        equal(await isAssigned(worker, assigned(worker)), false);
        await other.pause(paused, false);
        ok(await isAssigned(worker, assigned(worker)));
      }
      await other.pause('mail', true);
      ok(await isAssigned(worker, assigned(worker)));
    },
  },
  {
    title: 'IN-12 the next heartbeat frees a delivery that was assigned to an unregistered worker',
    needs: 'shared',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const assign = { workerId: '00000000-0000-4000-8000-000000000000', handlers: ['book'] };
      const event = incoming({ assign });
      const { claimed, pending } = await receiveOne(worker, event);
      // A store may also leave the delivery pending.
      equal(claimed.length, pending ? 0 : 1);
      const observer = await TestWorker.start(await another());
      await observer.heartbeat();
      deepEqual(await states(store, event), { book: 'pending 0' });
      for (const lease of claimed) equal((await store.complete(lease)).settled, false);
    },
  },
  {
    title: 'IN-16 batches and concurrent receives assign at most one delivery of an ordering key',
    async run({ store, another }) {
      const workers = [await TestWorker.start(store), await TestWorker.start(await another())];
      const event = (n: number) => assigned(workers[n % 2]!, { orderingKey: 'k' });
      const receipts = await store.receive([event(0), event(0), event(0)]);
      deepEqual(
        receipts.map(({ claimed }) => claimed.length),
        [1, 0, 0],
      );
      const later = await Promise.all(
        Array.from({ length: 20 }, (_, n) => workers[n % 2]!.store.receive([event(n)])),
      );
      ok(later.flat().every(({ claimed }) => claimed.length === 0));
      const other = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          workers[n % 2]!.store.receive([{ ...event(n), orderingKey: 'l' }]),
        ),
      );
      const first = other.flat().flatMap(({ claimed }) => claimed);
      ok(first.length <= 1);
      // The deliveries that were not assigned run one by one.
      let open = [...receipts.flatMap(({ claimed }) => claimed), ...first];
      let done = 0;
      for (; open.length > 0; done += 1) {
        await store.complete(open.shift()!);
        open = open.concat(await workers[done % 2]!.claim());
        ok(open.length <= 2);
      }
      equal(done, 43);
    },
  },
  {
    title:
      'newerHandled() is true for a delivery that was assigned on receipt if a newer event is done',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const at = (time: string) => new Date(`2026-11-20T${time}.000Z`);
      const event = (time: string) => assigned(worker, { orderingKey: 'k', occurredAt: at(time) });
      const [newer] = (await receiveOne(worker, event('12:00:00'))).claimed;
      await store.complete(newer!);
      const [older] = (await receiveOne(worker, event('11:59:59'))).claimed;
      equal(await store.newerHandled(older!), true);
      await store.complete(older!);
      const [same] = (await receiveOne(worker, event('12:00:00'))).claimed;
      equal(await store.newerHandled(same!), false);
    },
  },
  {
    title:
      'IN-16 receive() assigns a delivery again after all deliveries of the ordering key are done',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const event = () => assigned(worker, { orderingKey: 'k' });
      const first = event();
      const [lease] = (await receiveOne(worker, first)).claimed;
      await receiveOne(worker, event());
      await store.complete(lease!);
      await store.complete(await worker.claimOne());
      const [again] = (await receiveOne(worker, event())).claimed;
      await store.complete(again!);
      await advance(LEASE_MS / 2);
      // A redriven delivery is due, so a new delivery of its key has to wait.
      const selection = select(first.id);
      equal(await store.redrive(selection, REDRIVE_FORCED), 1);
      equal(await isAssigned(worker, event()), false);
    },
  },
];
