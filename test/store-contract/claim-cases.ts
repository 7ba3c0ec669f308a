import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ClaimedDelivery } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  REDRIVE_FORCED,
  TestWorker,
  idsOf,
  incoming,
  select,
  states,
  twoWorkers,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** Which deliveries a claim leases. */
export const claimCases: readonly InboxContractCase[] = [
  {
    title: 'IN-11 concurrent claims never lease one delivery to two workers',
    async run({ store, another }) {
      const stores = [store, store, await another(), await another()];
      const workers = await Promise.all(stores.map((own) => TestWorker.start(own)));
      const events = Array.from({ length: 60 }, () => incoming({ handlers: ['book', 'mail'] }));
      await store.receive(events);
      const claimed = await Promise.all(
        workers.map(async (worker) => {
          const all: ClaimedDelivery[] = [];
          for (;;) {
            const batch = await worker.claim(['book', 'mail'], 3);
            if (batch.length === 0) return all;
            all.push(...batch);
          }
        }),
      );
      // A claim may miss rows that another claim has locked at that moment.
      const left = await workers[0]!.claim(['book', 'mail'], 1000);
      const names = [...claimed.flat(), ...left].map(({ id, handler }) => `${id} ${handler}`);
      equal(names.length, 120);
      equal(new Set(names).size, 120);
    },
  },
  {
    title:
      'a claim leases due deliveries per handler up to its limit, in the order of their due times',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const events = Array.from({ length: 5 }, (_, n) =>
        incoming({ handlers: n === 2 ? ['mail'] : ['book'] }),
      );
      for (const event of events) {
        await store.receive([event]);
        await advance(10);
      }
      deepEqual(await store.claim({ workerId: worker.id, wanted: [] }), []);
      deepEqual(idsOf(await worker.claim(['book'], 1)), [events[0]!.id]);
      const wanted = [
        { handler: 'book', limit: 2 },
        { handler: 'mail', limit: 5 },
        { handler: 'none', limit: 5 },
      ];
      const claimed = await store.claim({ workerId: worker.id, wanted });
      const of = (name: string) => idsOf(claimed.filter(({ handler }) => handler === name));
      deepEqual(of('book'), [events[1]!.id, events[3]!.id]);
      deepEqual(of('mail'), [events[2]!.id]);
      equal(claimed.length, 3);
    },
  },
  {
    title: 'a claimed delivery describes its event, and each claim counts an attempt',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(await another());
      const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
      const headers = { 'user-agent': '"traceparent":"00-1"', traceparent };
      const event = incoming({ company: 'umbrella', headers });
      await store.receive([event]);
      await advance(45_000);
      const first = await worker.claimOne();
      const { company, id, handler, attempt, crashes, raw, ageMs } = first;
      deepEqual([company, id, handler, attempt, crashes], ['umbrella', event.id, 'book', 1, 0]);
      deepEqual({ ...first.traced }, { traceparent, eventType: event.eventType });
      ok(raw.equals(event.raw));
      ok(ageMs >= 45_000 && ageMs < 75_000, `${ageMs} ms old`);
      deepEqual(first.receivedAt, (await store.find('umbrella', event.id))!.receivedAt);
      await store.fail(first, { error: 'no', retryInMs: 0 });
      const second = await worker.claimOne();
      equal(second.attempt, 2);
      ok(second.token > first.token);
      deepEqual(await states(store, event), { book: 'running 2' });
    },
  },
  {
    title: 'IN-17 a dead delivery does not block later deliveries of its ordering key',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const [first, second] = [incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })];
      await store.receive([first]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([second]);
      equal((await worker.claimOne()).id, second.id);
    },
  },
  {
    title:
      'newerHandled() is true if the handler is done with a newer event of the same company and ordering key',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const at = (time: string) => new Date(`2026-11-20T${time}.000Z`);
      const newerHandled = async (time: string, company = 'acme', handler = 'book') => {
        const occurredAt = at(time);
        const oncePerTransaction = time === '13:00:00';
        const key = { orderingKey: 'k', oncePerTransaction };
        await store.receive([incoming({ ...key, occurredAt, company, handlers: [handler] })]);
        const lease = await worker.claimOne(handler);
        const newer = await store.newerHandled(lease);
        await store.complete(lease);
        return newer;
      };
      equal(await newerHandled('12:00:00'), false);
      equal(await newerHandled('11:00:00'), true);
      // The same time is not later.
      equal(await newerHandled('12:00:00'), false);
      equal(await newerHandled('13:00:00'), false);
      equal(await newerHandled('12:59:59'), true);
      equal(await newerHandled('10:00:00', 'umbrella'), false);
      equal(await newerHandled('10:00:00', 'acme', 'mail'), false);
    },
  },
  {
    title: 'newerHandled() stays true after the newer event is pruned',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const at = (time: string) => new Date(`2025-11-20T${time}.000Z`);
      const newerHandled = async (time: string) => {
        await store.receive([incoming({ orderingKey: 'k', occurredAt: at(time) })]);
        const lease = await worker.claimOne();
        const newer = await store.newerHandled(lease);
        await store.fail(lease, { error: 'no', retryInMs: null });
        return newer;
      };
      await store.receive([incoming({ orderingKey: 'k', occurredAt: at('12:00:00') })]);
      await store.complete(await worker.claimOne());
      await advance(2000);
      equal(await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 }), 1);
      equal(await newerHandled('11:00:00'), true);
      equal(await newerHandled('12:00:00'), false);
    },
  },
  {
    title: 'newerHandled() ignores newer events whose deliveries are pending, dead or skipped',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = (hour: string) =>
        incoming({ orderingKey: 'k', occurredAt: new Date(`2026-11-20T${hour}:00:00.000Z`) });
      const [dead, skipped, retried, old] = [event('15'), event('14'), event('13'), event('12')];
      await store.receive([dead]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([skipped]);
      await store.skip(select(skipped.id));
      await store.receive([retried]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 600_000 });
      await store.receive([old]);
      equal(await store.newerHandled(await worker.claimOne()), false);
    },
  },
  {
    title: 'nextDueInMs() returns the time until the next delivery becomes claimable',
    async run({ store, another, advance }) {
      const [worker, other] = await twoWorkers({ store, another });
      const dueInMs = (handlers = ['book']) => store.nextDueInMs(handlers);
      equal(await dueInMs(), null);
      equal(await dueInMs([]), null);
      await store.receive([incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })]);
      ok((await dueInMs())! <= 0);
      ok((await dueInMs(['mail', 'book']))! <= 0);
      equal(await dueInMs(['mail']), null);
      const lease = await worker.claimOne();
      equal((await worker.claim()).length, 0);
      // A running delivery does not count, nor does a waiting one.
      equal(await dueInMs(), null);
      await store.fail(lease, { error: 'no', retryInMs: 30_000 });
      ok((await dueInMs())! <= 0);
      const [next] = await worker.claim();
      const wait = (await dueInMs())!;
      ok(wait > 15_000 && wait <= 30_000, `due in ${wait} ms`);
      await other.store.pause('book', true);
      equal(await dueInMs(), null);
      await other.store.pause('book', false);
      await store.complete(next!);
      await advance(31_000);
      ok((await dueInMs())! <= 0);
    },
  },
  {
    title: 'IN-33 a claim finds other work behind 2,000 deliveries that wait for one ordering key',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      for (let batch = 0; batch < 4; batch += 1) {
        await store.receive(Array.from({ length: 500 }, () => incoming({ orderingKey: 'k' })));
      }
      const free = incoming({ orderingKey: 'l' });
      await store.receive([free]);
      const [busy] = await worker.claim(['book'], 1);
      let found: string[] = [];
      // Each claim looks at a bounded number of waiting deliveries.
      for (let n = 0; n < 20 && found.length === 0; n += 1) found = idsOf(await worker.claim());
      deepEqual(found, [free.id]);
      let done = 0;
      for (let next: ClaimedDelivery | undefined = busy; next && done < 5; done += 1) {
        equal((await store.complete(next)).nextDue, true);
        [next] = await worker.claim();
      }
      equal(done, 5);
    },
  },
  {
    title: 'onWake listeners are called when another process makes a delivery due',
    needs: 'shared',
    async run({ store, another }) {
      const other = await another();
      const worker = await TestWorker.start(other);
      const woken = () =>
        new Promise<void>((resolve) => {
          const stop = other.onWake(() => {
            stop();
            resolve();
          });
        });
      const event = incoming();
      let wake = woken();
      await store.receive([event]);
      await wake;
      await other.complete(await worker.claimOne());
      wake = woken();
      const selection = select(event.id);
      await store.redrive(selection, REDRIVE_FORCED);
      await wake;
      await store.pause('book', true);
      wake = woken();
      await store.pause('book', false);
      await wake;
    },
  },
];
