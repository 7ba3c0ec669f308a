import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ClaimedDelivery } from '../../inbox/store/inbox-store.js';
import { idsOf, incoming, states, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-case.js';

export const claimCases: readonly InboxContractCase[] = [
  {
    title: 'IN-11 never leases a delivery to two of several workers',
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
      // A claim may miss rows that another one has locked at that moment.
      const left = await workers[0]!.claim(['book', 'mail'], 1000);
      const names = [...claimed.flat(), ...left].map(({ id, handler }) => `${id} ${handler}`);
      equal(names.length, 120);
      equal(new Set(names).size, 120);
    },
  },
  {
    title: 'claims due deliveries of the given handlers, the longest due first, up to each limit',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const events = Array.from({ length: 5 }, (_, n) =>
        incoming({ handlers: n === 2 ? ['mail'] : ['book'] }),
      );
      for (const event of events) {
        await store.receive([event]);
        await advance(10);
      }
      deepEqual(await store.claim({ worker: worker.id, wanted: [] }), []);
      deepEqual(idsOf(await worker.claim(['book'], 1)), [events[0]!.id]);
      const wanted = [
        { handler: 'book', limit: 2 },
        { handler: 'mail', limit: 5 },
        { handler: 'none', limit: 5 },
      ];
      const claimed = await store.claim({ worker: worker.id, wanted });
      const of = (name: string) => idsOf(claimed.filter(({ handler }) => handler === name));
      deepEqual(of('book'), [events[1]!.id, events[3]!.id]);
      deepEqual(of('mail'), [events[2]!.id]);
      equal(claimed.length, 3);
    },
  },
  {
    title: 'describes a claimed delivery, and counts its attempts',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(await another());
      const event = incoming({ company: 'umbrella' });
      await store.receive([event]);
      await advance(45_000);
      const first = await worker.claimOne();
      const { company, id, handler, attempt, crashes, newerHandled, raw, ageMs } = first;
      deepEqual(
        { company, id, handler, attempt, crashes, newerHandled },
        {
          company: 'umbrella',
          id: event.id,
          handler: 'book',
          attempt: 1,
          crashes: 0,
          newerHandled: false,
        },
      );
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
    title: 'IN-17 lets the later deliveries of a key run if an earlier one is dead',
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
    title: 'reports whether this handler already did a newer event of the same company and key',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const at = (time: string) => new Date(`2026-11-20T${time}.000Z`);
      const newerHandled = async (time: string, company = 'acme', handler = 'book') => {
        const occurredAt = at(time);
        await store.receive([
          incoming({ orderingKey: 'k', occurredAt, company, handlers: [handler] }),
        ]);
        const lease = await worker.claimOne(handler);
        await store.complete(lease);
        return lease.newerHandled;
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
    title: 'reports that a newer event was handled, also after that event was pruned',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const at = (time: string) => new Date(`2025-11-20T${time}.000Z`);
      const newerHandled = async (time: string, handler = 'book') => {
        const occurredAt = at(time);
        await store.receive([incoming({ orderingKey: 'k', occurredAt, handlers: [handler] })]);
        const lease = await worker.claimOne(handler);
        await store.fail(lease, { error: 'no', retryInMs: null });
        return lease.newerHandled;
      };
      await store.receive([incoming({ orderingKey: 'k', occurredAt: at('12:00:00') })]);
      await store.complete(await worker.claimOne());
      await advance(2000);
      equal(await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 10 }), 1);
      equal(await newerHandled('11:00:00'), true);
      equal(await newerHandled('11:00:00', 'mail'), false);
      equal(await newerHandled('12:00:00'), false);
    },
  },
  {
    title: 'does not call an event handled that is pending, dead or skipped',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      const event = (hour: string) =>
        incoming({ orderingKey: 'k', occurredAt: new Date(`2026-11-20T${hour}:00:00.000Z`) });
      const [dead, skipped, retried, old] = [event('15'), event('14'), event('13'), event('12')];
      await store.receive([dead]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([skipped]);
      await store.skip([{ company: 'acme', id: skipped.id, handlers: ['book'] }]);
      await store.receive([retried]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: 600_000 });
      await store.receive([old]);
      equal((await worker.claimOne()).newerHandled, false);
    },
  },
  {
    title: 'returns when the next delivery becomes claimable',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store);
      const other = await TestWorker.start(await another());
      const dueInMs = (handlers = ['book']) => store.nextDueInMs(handlers);
      equal(await dueInMs(), null);
      equal(await dueInMs([]), null);
      await store.receive([incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })]);
      ok((await dueInMs())! <= 0);
      ok((await dueInMs(['mail', 'book']))! <= 0);
      equal(await dueInMs(['mail']), null);
      const lease = await worker.claimOne();
      equal((await worker.claim()).length, 0);
      // A running delivery does not count, and a held one neither.
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
      await worker.claimOne();
      await other.outlive(advance);
      // A suspect does not count.
      equal(await dueInMs(), null);
    },
  },
  {
    title: 'IN-33 claims other work past 2,000 deliveries of a busy key',
    async run({ store }) {
      const worker = await TestWorker.start(store);
      for (let batch = 0; batch < 4; batch += 1) {
        await store.receive(Array.from({ length: 500 }, () => incoming({ orderingKey: 'k' })));
      }
      const free = incoming({ orderingKey: 'l' });
      await store.receive([free]);
      const [busy] = await worker.claim(['book'], 1);
      let found: string[] = [];
      // Each claim looks at a bounded number of them.
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
    title: 'calls listeners when something became due through another process',
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
      const selection = [{ company: 'acme', id: event.id, handlers: ['book'] }];
      await store.redrive(selection, { force: true, dueInMs: [0] });
      await wake;
      await store.pause('book', true);
      wake = woken();
      await store.pause('book', false);
      await wake;
    },
  },
];
