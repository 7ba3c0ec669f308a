import { deepEqual, equal, ok } from 'node:assert/strict';
import type {
  ClaimedDelivery,
  InboxStore,
  Lease,
  SettleResult,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  idsOf,
  incoming,
  LEASE_MS,
  REDRIVE_NOW,
  select,
  states,
  TestWorker,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase, InboxUnderTest } from './contract-fixtures.ts';

const key = { orderingKey: 'k' };

interface BusyKey {
  readonly worker: TestWorker;
  readonly other: TestWorker;
  /** The running delivery. */
  readonly lease: ClaimedDelivery;
  /** Events whose deliveries wait, the earliest due first. */
  readonly waiting: readonly string[];
}

/** An ordering key with one delivery that runs, and three that wait. */
async function startBusyKey(inbox: InboxUnderTest): Promise<BusyKey> {
  const { store, advance } = inbox;
  const [worker, other] = await twoWorkers(inbox);
  const events = Array.from({ length: 4 }, () => incoming(key));
  for (const event of events) {
    await store.receive([event]);
    await advance(10);
  }
  const [lease] = await worker.claim(['book'], 1);
  equal(lease!.id, events[0]!.id);
  equal((await other.claim()).length, 0);
  equal(await store.nextDueInMs(['book']), null);
  return { worker, other, lease: lease!, waiting: idsOf(events.slice(1)) };
}

/** Ways to settle a running delivery. */
const SETTLE: Record<string, (store: InboxStore, lease: Lease) => Promise<SettleResult>> = {
  'is completed': (store, lease) => store.complete(lease),
  'fails for good': (store, lease) => store.fail(lease, { error: 'no', retryInMs: null }),
  'fails and waits for a retry': (store, lease) =>
    store.fail(lease, { error: 'no', retryInMs: 3_600_000 }),
  'is released': (store, lease) => store.release(lease, 3_600_000),
};

const settleCases = Object.entries(SETTLE).map(([end, settle]): InboxContractCase => ({
  title: `IN-16 the longest waiting delivery of a key is claimable after the running delivery ${end}`,
  async run(inbox) {
    const { other, lease, waiting } = await startBusyKey(inbox);
    deepEqual(await settle(inbox.store, lease), { settled: true, nextDue: true });
    ok((await other.store.nextDueInMs(['book']))! <= 0);
    const next = await other.claimOne();
    equal(next.id, waiting[0]);
    await other.store.complete(next);
    deepEqual(idsOf(await other.claim()), [waiting[1]]);
  },
}));

/** Deliveries of one ordering key run one by one; the others wait for their turn. */
export const orderingCases: readonly InboxContractCase[] = [
  {
    title: 'IN-16 concurrent claims lease one delivery of a company, handler and ordering key',
    async run({ store, another }) {
      const events = Array.from({ length: 12 }, () =>
        incoming({ ...key, handlers: ['book', 'mail'] }),
      );
      await store.receive(events);
      await store.receive([
        incoming({ orderingKey: 'l' }),
        incoming({ ...key, company: 'umbrella' }),
        incoming(),
        incoming(),
      ]);
      const stores = [store, await another(), await another()];
      const workers = await Promise.all(stores.map((own) => TestWorker.start(own)));
      const claims = workers.map((worker) => worker.claim(['book', 'mail']));
      const claimed = (await Promise.all(claims)).flat();
      const leased = [...claimed, ...(await workers[0]!.claim(['book', 'mail']))];
      const of = (handler: string) =>
        leased.filter(
          (delivery) => delivery.handler === handler && idsOf(events).includes(delivery.id),
        );
      equal(of('book').length, 1);
      equal(of('mail').length, 1);
      equal(leased.length, 6);
      equal((await store.complete(of('book')[0]!)).nextDue, true);
      equal((await workers[1]!.claim()).length, 1);
    },
  },
  {
    title: 'IN-16 concurrent claims and settlements never run two deliveries of one ordering key',
    async run({ store, another }) {
      const keys = ['a', 'b', 'c'];
      await store.receive(
        Array.from({ length: 90 }, (_, index) => {
          const orderingKey = keys[index % 3]!;
          return incoming({ orderingKey, raw: Buffer.from(orderingKey) });
        }),
      );
      const running = new Map<string, number>();
      let most = 0;
      let settled = 0;
      const count = (delivery: ClaimedDelivery, by: number): void => {
        const name = delivery.raw.toString();
        const now = (running.get(name) ?? 0) + by;
        running.set(name, now);
        most = Math.max(most, now);
      };
      const work = async (own: InboxStore): Promise<void> => {
        const worker = await TestWorker.start(own);
        for (let idle = 0; settled < 90 && idle < 2000;) {
          const batch = await worker.claim(['book'], 4);
          idle = batch.length === 0 ? idle + 1 : 0;
          for (const delivery of batch) count(delivery, 1);
          // Meanwhile another worker could claim the same key, if the store allowed that.
          await worker.heartbeat();
          for (const delivery of batch) {
            count(delivery, -1);
            ok((await own.complete(delivery)).settled);
            settled += 1;
          }
        }
      };
      await Promise.all([work(store), work(await another()), work(await another())]);
      equal(settled, 90);
      equal(most, 1);
    },
  },
  ...settleCases,
  {
    title:
      'IN-16 IN-24 deliveries of a key run one by one after the grace period of a retired worker',
    needs: 'shared',
    async run(inbox) {
      const { worker, other, lease, waiting } = await startBusyKey(inbox);
      await worker.store.retire(worker.id, 1000);
      await other.heartbeat();
      await inbox.advance(2000);
      await other.heartbeat();
      const done: string[] = [];
      for (let n = 0; n < 4; n += 1) {
        const next = await other.claimOne();
        await other.store.complete(next);
        done.push(next.id);
      }
      deepEqual(done.toSorted(), [lease.id, ...waiting].toSorted());
    },
  },
  {
    title:
      'IN-16 the next waiting delivery becomes claimable when the delivery before it is skipped',
    async run(inbox) {
      const { worker, lease, waiting } = await startBusyKey(inbox);
      const { store } = worker;
      await store.complete(lease);
      // The first waiting delivery is claimable now, and no worker has claimed it.
      equal(await store.skip(select(waiting[0]!)), 1);
      ok((await store.nextDueInMs(['book']))! <= 0);
      deepEqual(idsOf(await worker.claim()), [waiting[1]]);
    },
  },
  {
    title:
      'IN-16 a waiting delivery is listed as pending and past due, and a redrive does not end the wait',
    async run(inbox) {
      const { worker, lease, waiting } = await startBusyKey(inbox);
      const { store } = worker;
      const [delivery] = (await store.find('acme', waiting[0]!))!.deliveries;
      equal(delivery!.state, 'pending');
      ok(
        delivery!.dueAt!.getTime() <= (await store.find('acme', waiting[2]!))!.receivedAt.getTime(),
      );
      const selections = waiting.map((id) => ({ company: 'acme', id, handlers: ['book'] }));
      equal(await store.redrive(selections, { force: true, dueInMs: [0, 0, 0] }), 3);
      equal((await worker.claim()).length, 0);
      await store.complete(lease);
      equal((await worker.claim()).length, 1);
    },
  },
  {
    title: 'IN-16 deliveries of another handler or company with the same key do not wait',
    async run(inbox) {
      const { worker } = await startBusyKey(inbox);
      const both = { ...key, handlers: ['book', 'mail'] };
      const [a, b] = [incoming(both), incoming({ ...both, company: 'umbrella' })];
      await worker.store.receive([a, b]);
      const claimed = await worker.claim(['book', 'mail']);
      deepEqual(claimed.map(({ company, handler }) => `${company} ${handler}`).toSorted(), [
        'acme mail',
        'umbrella book',
        'umbrella mail',
      ]);
    },
  },
  {
    title: 'IN-16 IN-27 waiting deliveries of a key run one by one after a pause',
    async run(inbox) {
      const { worker, other, lease, waiting } = await startBusyKey(inbox);
      await other.store.pause('book', true);
      await worker.store.complete(lease);
      equal((await worker.claim()).length, 0);
      await other.store.pause('book', false);
      deepEqual(idsOf(await worker.claim()), [waiting[0]]);
    },
  },
  {
    title: 'IN-16 a redriven delivery and a new delivery of the same key run one by one',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const [a, b] = [incoming(key), incoming(key)];
      await store.receive([a]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([b]);
      const lease = await worker.claimOne();
      await store.redrive(select(a.id), REDRIVE_NOW);
      equal((await worker.claim()).length, 0);
      equal((await store.complete(lease)).nextDue, true);
      equal((await worker.claimOne()).id, a.id);
      deepEqual(await states(store, a), { book: 'running 1' });
    },
  },
  {
    title:
      'IN-16 a retry that becomes due while another delivery of its key runs waits for its turn',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const [retried, next] = [incoming(key), incoming(key)];
      await store.receive([retried]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 30_000 });
      await store.receive([next]);
      const lease = await worker.claimOne();
      equal(lease.id, next.id);
      await advance(31_000);
      equal((await worker.claim()).length, 0);
      equal((await store.complete(lease)).nextDue, true);
      equal((await worker.claimOne()).id, retried.id);
    },
  },
  {
    title:
      'IN-12 IN-16 waiting deliveries of a key run after the worker of the running delivery died',
    needs: 'shared',
    async run(inbox) {
      const { worker, other, lease, waiting } = await startBusyKey(inbox);
      await inbox.advance(LEASE_MS / 2);
      await other.declareOthersDead(inbox.advance);
      // The other deliveries do not wait for the suspect.
      const done: string[] = [];
      for (let n = 0; n < 3; n += 1) {
        const next = await other.claimOne();
        equal(await other.claimSuspect(), null, 'two deliveries of one key run');
        await other.store.complete(next);
        done.push(next.id);
      }
      deepEqual(done, waiting);
      const suspect = await other.claimSuspect();
      equal(suspect?.id, lease.id);
      equal((await worker.store.complete(lease)).settled, false);
      equal((await other.store.complete(suspect)).settled, true);
    },
  },
];
