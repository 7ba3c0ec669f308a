import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ClaimedDelivery, InboxStore } from '../../inbox/store/inbox-store.js';
import { idsOf, incoming, LEASE_MS, NOW, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase, InboxUnderTest } from './contract-case.js';

const key = { orderingKey: 'k' };

interface Held {
  readonly worker: TestWorker;
  readonly other: TestWorker;
  /** The one that runs. */
  readonly lease: ClaimedDelivery;
  /** Events whose deliveries are held, the longest due first. */
  readonly held: readonly string[];
}

/** One delivery of a key that runs, and three that are held. */
async function hold({ store, another, advance }: InboxUnderTest): Promise<Held> {
  const worker = await TestWorker.start(store);
  const other = await TestWorker.start(await another());
  const events = Array.from({ length: 4 }, () => incoming(key));
  for (const event of events) {
    await store.receive([event]);
    await advance(10);
  }
  const [lease] = await worker.claim(['book'], 1);
  equal(lease!.id, events[0]!.id);
  equal((await other.claim()).length, 0);
  equal(await store.nextDueInMs(['book']), null);
  return { worker, other, lease: lease!, held: idsOf(events.slice(1)) };
}

/** Ways in which a running delivery ends, and whether the store reports that the next one is due. */
const ENDS: Record<string, (held: Held, inbox: InboxUnderTest) => Promise<boolean>> = {
  'is completed': async ({ worker, lease }) => (await worker.store.complete(lease)).nextDue,
  'fails and is retried': async ({ worker, lease }) =>
    (await worker.store.fail(lease, { error: 'no', retryInMs: 3_600_000 })).nextDue,
  'fails for good': async ({ worker, lease }) =>
    (await worker.store.fail(lease, { error: 'no', retryInMs: null })).nextDue,
  'is released': async ({ worker, lease }) =>
    (await worker.store.release(lease, 3_600_000)).nextDue,
  'is freed from a dead worker': async ({ other }, { advance }) => {
    await other.outlive(advance);
    return true;
  },
};

const endCases = Object.entries(ENDS).map(([end, act]): InboxContractCase => ({
  title: `IN-16 makes the longest held delivery of a key claimable when the running one ${end}`,
  async run(inbox) {
    const held = await hold(inbox);
    equal(await act(held, inbox), true);
    ok((await held.other.store.nextDueInMs(['book']))! <= 0);
    const [next, ...more] = await held.other.claim();
    equal(next?.id, held.held[0]);
    equal(more.length, 0);
    await held.other.store.complete(next!);
    deepEqual(idsOf(await held.other.claim()), [held.held[1]]);
  },
}));

export const orderingCases: readonly InboxContractCase[] = [
  {
    title: 'IN-16 never leases two deliveries of one company, handler and ordering key',
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
    title: 'IN-16 keeps an ordering key to one run under concurrent claims and settlements',
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
          // Time for the others to get the same key, if the store gives it to them.
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
  ...endCases,
  {
    title: 'IN-16 IN-24 lets all of a key run one after the other when its retired worker is freed',
    async run(inbox) {
      const { worker, other, lease, held } = await hold(inbox);
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
      deepEqual(done.toSorted(), [lease.id, ...held].toSorted());
    },
  },
  {
    title: 'IN-16 makes the next held delivery claimable when the one before it is skipped',
    async run(inbox) {
      const { worker, lease, held } = await hold(inbox);
      const { store } = worker;
      await store.complete(lease);
      // That released the first. Nobody has claimed it.
      equal(await store.skip([{ company: 'acme', id: held[0]!, handlers: ['book'] }]), 1);
      ok((await store.nextDueInMs(['book']))! <= 0);
      deepEqual(idsOf(await worker.claim()), [held[1]]);
    },
  },
  {
    title: 'reports that no held delivery became claimable if there is none',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      await store.receive([incoming(key)]);
      const lease = await worker.claimOne();
      await store.receive([incoming({ ...key, company: 'umbrella' }), incoming()]);
      deepEqual(await store.complete(lease), { settled: true, nextDue: false });
      deepEqual(await store.complete(lease), { settled: false, nextDue: false });
    },
  },
  {
    title: 'shows a held delivery as pending and past due, and leaves it held if it is redriven',
    async run(inbox) {
      const { worker, lease, held } = await hold(inbox);
      const { store } = worker;
      const [delivery] = (await store.find('acme', held[0]!))!.deliveries;
      equal(delivery!.state, 'pending');
      ok(delivery!.dueAt!.getTime() <= (await store.find('acme', held[2]!))!.receivedAt.getTime());
      const selections = held.map((id) => ({ company: 'acme', id, handlers: ['book'] }));
      equal(await store.redrive(selections, { force: true, dueInMs: [0, 0, 0] }), 3);
      equal((await worker.claim()).length, 0);
      await store.complete(lease);
      equal((await worker.claim()).length, 1);
    },
  },
  {
    title: 'holds no delivery of another handler or company with the same key',
    async run(inbox) {
      const { worker } = await hold(inbox);
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
    title: 'IN-16 IN-27 lets held deliveries run after a pause',
    async run(inbox) {
      const { worker, other, lease, held } = await hold(inbox);
      await other.store.pause('book', true);
      await worker.store.complete(lease);
      equal((await worker.claim()).length, 0);
      await other.store.pause('book', false);
      deepEqual(idsOf(await worker.claim()), [held[0]]);
    },
  },
  {
    title: 'IN-16 runs a redriven delivery and a new one of its key one after the other',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const [a, b] = [incoming(key), incoming(key)];
      await store.receive([a]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([b]);
      const lease = await worker.claimOne();
      await store.redrive([{ company: 'acme', id: a.id, handlers: ['book'] }], NOW);
      equal((await worker.claim()).length, 0);
      equal((await store.complete(lease)).nextDue, true);
      equal((await worker.claimOne()).id, a.id);
      deepEqual(await states(store, a), { book: 'running 1' });
    },
  },
  {
    title: 'IN-12 IN-16 frees a key whose worker died with several of its deliveries held',
    async run(inbox) {
      const { worker, other, lease } = await hold(inbox);
      await inbox.advance(LEASE_MS / 2);
      await other.outlive(inbox.advance);
      // Until the suspect runs, the others go on.
      const done: string[] = [];
      for (let n = 0; n < 3; n += 1) {
        const next = await other.claimOne();
        equal(await other.claimSuspect(false), null, 'two deliveries of one key run');
        await other.store.complete(next);
        done.push(next.id);
      }
      const suspect = await other.claimSuspect(false);
      equal(suspect?.id, lease.id);
      equal((await worker.store.complete(lease)).settled, false);
      equal((await other.store.complete(suspect)).settled, true);
      equal(new Set([...done, lease.id]).size, 4);
    },
  },
];
