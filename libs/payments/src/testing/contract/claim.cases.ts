import { deepEqual, equal, ok } from 'node:assert/strict';
import type { ClaimedDelivery } from '../../inbox/inbox-store.js';
import { claim, claimOne, incoming, LEASE_MS, states } from './contract.events.js';
import type { InboxContractCase } from './inbox.contract.js';

export const claimCases: readonly InboxContractCase[] = [
  {
    title: '11: never leases a delivery to two of several workers',
    async run({ store, another }) {
      const stores = [store, store, await another(), await another()];
      const events = Array.from({ length: 60 }, () => incoming({ handlers: ['book', 'mail'] }));
      await store.receive(events);
      const claimed = await Promise.all(
        stores.map(async (own) => {
          const all: ClaimedDelivery[] = [];
          for (;;) {
            const batch = await claim(own, ['book', 'mail'], 3);
            if (batch.length === 0) return all;
            all.push(...batch);
          }
        }),
      );
      const names = claimed.flat().map(({ id, handler }) => `${id} ${handler}`);
      // SKIP LOCKED and its like may pass a row over for a moment; what nobody took is taken now.
      const left = (await claim(store, ['book', 'mail'], 1000)).map((d) => `${d.id} ${d.handler}`);
      equal(new Set([...names, ...left]).size, 120);
      equal(names.length + left.length, 120);
    },
  },
  {
    title:
      'claims only due deliveries of the handlers named, the longest due first, up to the limit',
    async run({ store, advance }) {
      const events = [incoming(), incoming(), incoming({ handlers: ['mail'] })];
      for (const event of events) {
        await store.receive([event]);
        await advance(10);
      }
      equal((await claim(store, [])).length, 0);
      deepEqual(
        (await claim(store, ['book'], 1)).map(({ id }) => id),
        [events[0]!.id],
      );
      deepEqual(
        (await claim(store, ['book', 'mail'])).map(({ id }) => id),
        [events[1]!.id, events[2]!.id],
      );
    },
  },
  {
    title: '12: lets another worker take over when the lease ends, and counts the attempt',
    async run({ store, another, advance }) {
      const event = incoming();
      await store.receive([event]);
      const first = await claimOne(store);
      equal(first.attempt, 1);
      equal(first.takenOver, false);
      const other = await another();
      await advance(LEASE_MS - 1000);
      equal((await claim(other)).length, 0);
      await advance(2000);
      const second = await claimOne(other);
      equal(second.attempt, 2);
      equal(second.takenOver, true);
      ok(second.token > first.token);
      deepEqual(await states(store, event), { book: 'running 2' });
    },
  },
  {
    title: '16: never leases two deliveries of one company, handler and ordering key',
    async run({ store, another }) {
      const key = 'transaction-1';
      const events = Array.from({ length: 12 }, () =>
        incoming({ orderingKey: key, handlers: ['book', 'mail'] }),
      );
      await store.receive(events);
      await store.receive([
        incoming({ orderingKey: 'transaction-2' }),
        incoming({ orderingKey: key, company: 'umbrella' }),
        incoming({ orderingKey: null }),
        incoming({ orderingKey: null }),
      ]);
      const others = [await another(), await another()];
      const claimed = (
        await Promise.all([store, ...others].map((own) => claim(own, ['book', 'mail'])))
      ).flat();
      const leased = [...claimed, ...(await claim(store, ['book', 'mail']))];
      const of = (handler: string) =>
        leased.filter(
          (delivery) => delivery.handler === handler && events.some(({ id }) => id === delivery.id),
        );
      equal(of('book').length, 1);
      equal(of('mail').length, 1);
      equal(leased.length, 6);
      // The next one's turn comes when the first is settled.
      await store.complete(of('book')[0]!);
      equal((await claim(store, ['book'])).length, 1);
    },
  },
  {
    title: '16: holds the ordering key under concurrent claims and settlements',
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
        const key = delivery.raw.toString();
        const now = (running.get(key) ?? 0) + by;
        running.set(key, now);
        most = Math.max(most, now);
      };
      const work = async (own: typeof store): Promise<void> => {
        let idle = 0;
        while (settled < 90 && idle < 2000) {
          const batch = await claim(own, ['book'], 4);
          idle = batch.length === 0 ? idle + 1 : 0;
          for (const delivery of batch) count(delivery, 1);
          // As long as it takes the others to be given the same key, if they are.
          for (const delivery of batch) ok(await own.extend(delivery, LEASE_MS));
          for (const delivery of batch) {
            count(delivery, -1);
            ok(await own.complete(delivery));
            settled += 1;
          }
        }
      };
      await Promise.all([work(store), work(await another()), work(await another())]);
      equal(settled, 90);
      equal(most, 1);
    },
  },
  {
    title: '17: lets the later deliveries of a key run when one of it is dead',
    async run({ store }) {
      const [first, second] = [incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })];
      await store.receive([first]);
      await store.fail(await claimOne(store), { error: 'no', retryInMs: null });
      await store.receive([second]);
      equal((await claimOne(store)).id, second.id);
    },
  },
  {
    title: 'frees an ordering key when its lease ends',
    async run({ store, advance }) {
      await store.receive([incoming({ orderingKey: 'k' }), incoming({ orderingKey: 'k' })]);
      equal((await claim(store)).length, 1);
      await advance(LEASE_MS + 1000);
      equal((await claim(store)).length, 1);
    },
  },
  {
    title: 'tells whether a newer event of the same key was already handled',
    async run({ store }) {
      const at = (time: string) => new Date(`2026-11-20T${time}.000Z`);
      const newer = incoming({ orderingKey: 'k', occurredAt: at('12:00:00') });
      const older = incoming({ orderingKey: 'k', occurredAt: at('11:00:00') });
      await store.receive([newer]);
      const first = await claimOne(store);
      equal(first.newerHandled, false);
      await store.complete(first);
      await store.receive([older]);
      const late = await claimOne(store);
      equal(late.newerHandled, true);
      await store.complete(late);
      await store.receive([incoming({ orderingKey: 'k', occurredAt: at('13:00:00') })]);
      equal((await claimOne(store)).newerHandled, false);
      await store.receive([
        incoming({ orderingKey: 'k', company: 'umbrella', occurredAt: at('10:00:00') }),
      ]);
      equal((await claimOne(store)).newerHandled, false);
    },
  },
  {
    title: '23: keeps leases right for workers whose clocks are 10 minutes off, either way',
    needs: 'ownClock',
    async run({ store, another }) {
      const early = await another({ clockOffsetMs: -600_000 });
      const late = await another({ clockOffsetMs: 600_000 });
      await store.receive([incoming()]);
      await early.receive([incoming()]);
      await late.receive([incoming()]);
      equal((await claim(late, ['book'], 1)).length, 1);
      equal((await claim(early, ['book'], 1)).length, 1);
      equal((await claim(store, ['book'], 9)).length, 1);
      for (const own of [store, early, late]) equal((await claim(own)).length, 0);
    },
  },
  {
    title: '23: keeps the waits for retries and the ages right between such workers',
    needs: 'ownClock',
    async run({ store, another, advance }) {
      const early = await another({ clockOffsetMs: -600_000 });
      const late = await another({ clockOffsetMs: 600_000 });
      await late.receive([incoming()]);
      await early.fail(await claimOne(early), { error: 'no', retryInMs: 60_000 });
      for (const own of [store, early, late]) {
        equal((await claim(own)).length, 0);
        const dueInMs = (await own.nextDueInMs(['book']))!;
        ok(dueInMs > 30_000 && dueInMs <= 60_000, `due in ${dueInMs} ms`);
        ok((await own.stats()).oldestPendingMs! < 30_000);
        equal(await own.prune({ bodiesMs: 300_000, tombstonesMs: 300_000, limit: 10 }), 0);
      }
      await advance(61_000);
      const again = await claimOne(late);
      ok(await early.complete(again));
    },
  },
];
