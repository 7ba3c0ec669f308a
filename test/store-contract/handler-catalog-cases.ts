import { deepEqual, equal, ok } from 'node:assert/strict';
import type {
  HandlerCatalog,
  InboxStore,
  KnownHandler,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import {
  forgetHandler,
  idsOf,
  incoming,
  LEASE_MS,
  listAll,
  outcomesOf,
  states,
  TestWorker,
} from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

const book = { name: 'book', patterns: ['transaction.*'] };
const mail = { name: 'mail', patterns: ['transaction.completed', 'payout.*'] };

/** `name: patterns` of each handler, in the order of the catalog. */
function known({ handlers }: HandlerCatalog): string[] {
  return handlers.map(({ name, patterns }) => `${name}: ${[...patterns].toSorted().join()}`);
}

async function catalogOf(store: InboxStore): Promise<string[]> {
  return known(await store.catalog());
}

/** The catalog of the handlers that workers registered. */
export const catalogCases: readonly InboxContractCase[] = [
  {
    title: 'IN-32 the catalog lists handlers by name, and each change increases its version',
    async run({ store, another }) {
      deepEqual(await store.catalog(), { version: 0, handlers: [] });
      const id = (n: number) => `00000000-0000-4000-8000-00000000000${n}`;
      const other = await another();
      const first = await store.register({ id: id(1), leaseMs: LEASE_MS, handlers: [mail] });
      deepEqual(known(first), ['mail: payout.*,transaction.completed']);
      ok(first.version > 0);
      deepEqual(await other.catalog(), first);
      const same = await other.register({ id: id(2), leaseMs: LEASE_MS, handlers: [mail] });
      equal(same.version, first.version);
      const more = await other.register({ id: id(3), leaseMs: LEASE_MS, handlers: [mail, book] });
      ok(more.version > first.version);
      deepEqual(known(more), ['book: transaction.*', 'mail: payout.*,transaction.completed']);
      const none = await store.register({ id: id(4), leaseMs: LEASE_MS, handlers: [] });
      equal(none.version, more.version);
      deepEqual(known(none), known(more));
    },
  },
  {
    title:
      'IN-32 the catalog has the patterns of all live workers, or the last patterns if no worker is live',
    needs: 'shared',
    async run({ store, another, advance }) {
      const old = await TestWorker.start(store, [{ name: 'book', patterns: ['a', 'b'] }]);
      const observer = await TestWorker.start(await another());
      const { version } = await store.catalog();
      await TestWorker.start(observer.store, [{ name: 'book', patterns: ['b', 'c'] }]);
      deepEqual(await catalogOf(store), ['book: a,b,c']);
      ok((await store.catalog()).version > version);
      // Only the old worker sends heartbeats; later no worker does.
      await observer.heartbeat();
      await advance(LEASE_MS - 10_000);
      await old.heartbeat();
      await observer.heartbeat();
      await advance(11_000);
      await observer.heartbeat();
      const before = await store.catalog();
      deepEqual(known(before), ['book: a,b']);
      await observer.declareOthersDead(advance);
      const after = await store.catalog();
      deepEqual(known(after), ['book: a,b']);
      equal(after.version, before.version);
    },
  },
  {
    title: 'IN-32 the catalog keeps the patterns of the other workers when a worker retires',
    needs: 'shared',
    async run({ store }) {
      const old = await TestWorker.start(store, [{ name: 'book', patterns: ['a'] }]);
      await TestWorker.start(store, [{ name: 'book', patterns: ['b'] }]);
      const { version } = await store.catalog();
      await store.retire(old.id, 0);
      deepEqual(await catalogOf(store), ['book: b']);
      ok((await store.catalog()).version > version);
    },
  },
  {
    title: 'IN-32 the last-seen time of a handler with a live worker is at most one heartbeat old',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store, [book]);
      const [first] = (await store.catalog()).handlers;
      const sinceMs = async () => {
        const [{ firstSeenAt, lastSeenAt }] = (await store.catalog()).handlers as [KnownHandler];
        deepEqual(firstSeenAt, first!.firstSeenAt);
        return lastSeenAt.getTime() - firstSeenAt.getTime();
      };
      ok((await sinceMs()) < 10_000);
      await advance(30_000);
      await worker.heartbeat();
      const later = await sinceMs();
      ok(later >= 29_900 && later < 45_000, `last seen after ${later} ms`);
    },
  },
  {
    title: 'IN-32 the catalog has the times at which a handler was first and last registered',
    needs: 'shared',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store, [book]);
      const seen = async () => (await store.catalog()).handlers[0]!;
      const first = await seen();
      ok(first.firstSeenAt instanceof Date);
      const sinceMs = async () => {
        const { firstSeenAt, lastSeenAt } = await seen();
        return lastSeenAt.getTime() - firstSeenAt.getTime();
      };
      ok((await sinceMs()) < 10_000);
      await advance(30_000);
      await worker.heartbeat();
      const later = await sinceMs();
      ok(later >= 29_900 && later < 45_000, `last seen after ${later} ms`);
      await store.retire(worker.id, 0);
      await advance(100_000);
      await (await TestWorker.start(store)).heartbeat();
      ok((await sinceMs()) < 45_000);
      await TestWorker.start(store, [book]);
      ok((await sinceMs()) >= 129_900);
    },
  },
  {
    title: 'IN-32 an event that was matched with another version of the catalog is not stored',
    async run({ store, another }) {
      const other = await another();
      const before = incoming({ orderingKey: 'tx', oncePerTransaction: true });
      await store.receive([before]);
      const worker = await TestWorker.start(other, [book]);
      const { version } = await store.catalog();
      const assign = { workerId: worker.id, handlers: ['book'] };
      const [late, current] = [incoming({ assign }), incoming({ catalogVersion: version })];
      const receipts = await store.receive([
        late,
        before,
        current,
        incoming({ orderingKey: 'tx', oncePerTransaction: true }),
        incoming({ handlers: [] }),
        late,
      ]);
      deepEqual(outcomesOf(receipts), [
        'outdated',
        'duplicate',
        'stored',
        'duplicate',
        'outdated',
        'outdated',
      ]);
      deepEqual(receipts[0], {
        outcome: 'outdated',
        id: late.id,
        claimed: [],
        pending: false,
        fulfilled: [],
      });
      equal(await store.find('acme', late.id), undefined);
      deepEqual(idsOf(await listAll(store)), [before.id, current.id]);
      const again = { ...late, catalogVersion: version, handlers: ['book', 'mail'] };
      const [receipt] = await store.receive([again]);
      deepEqual([receipt!.outcome, receipt!.claimed.length], ['stored', 1]);
      deepEqual(await states(store, late), { book: 'running 1', mail: 'pending 0' });
      const ahead = incoming({ catalogVersion: version + 1 });
      equal((await store.receive([ahead]))[0]!.outcome, 'outdated');
    },
  },
  {
    title: 'IN-32 no event with an old catalog version is stored after a registration resolved',
    async run({ store, another }) {
      const other = await another();
      let newest = 0;
      const receiving = async (own: InboxStore) => {
        for (let n = 0; n < 40; n += 1) {
          const known = newest;
          const { version } = await own.catalog();
          ok(version >= known, 'the catalog went back');
          const event = incoming({ catalogVersion: Math.max(0, version - (n % 2)) });
          const required = newest;
          const [receipt] = await own.receive([event]);
          if (event.catalogVersion < required) equal(receipt!.outcome, 'outdated');
          if (receipt!.outcome === 'outdated')
            ok((await own.catalog()).version > event.catalogVersion);
        }
      };
      const registering = async () => {
        for (let n = 0; n < 10; n += 1) {
          await TestWorker.start(other, [{ name: `handler ${n}`, patterns: ['*'] }]);
          newest = (await other.catalog()).version;
        }
      };
      await Promise.all([receiving(store), receiving(other), registering()]);
      equal((await store.catalog()).handlers.length, 10);
    },
  },
  {
    title: 'IN-32 workers of several processes can register at the same time',
    needs: 'shared',
    async run({ store, another }) {
      const stores = [store, await another(), await another()];
      await Promise.all(
        Array.from({ length: 12 }, (_, n) =>
          TestWorker.start(stores[n % 3]!, [{ name: `handler ${n % 4}`, patterns: [`p${n}`] }]),
        ),
      );
      const { handlers } = await store.catalog();
      deepEqual(
        handlers.map(({ name, patterns }) => [name, patterns.length]),
        [0, 1, 2, 3].map((n) => [`handler ${n}`, 3]),
      );
    },
  },
  {
    title: 'forgetHandler() removes a handler without live workers and skips its open deliveries',
    needs: 'shared',
    async run({ store, another, advance }) {
      const worker = await TestWorker.start(store, [book, mail]);
      const observer = await TestWorker.start(await another(), [mail]);
      const { version: catalogVersion } = await store.catalog();
      const event = (handlers: string[]) =>
        incoming({ handlers, catalogVersion, orderingKey: 'k' });
      const [dead, done, pending] = [event(['book']), event(['book', 'mail']), event(['book'])];
      await store.receive([dead]);
      await store.fail(await worker.claimOne(), { error: 'no', retryInMs: null });
      await store.receive([done]);
      await store.complete(await worker.claimOne());
      await store.receive([pending]);
      equal(await forgetHandler(store, 'book'), null);
      deepEqual(await states(store, pending), { book: 'pending 0' });
      await observer.declareOthersDead(advance);
      equal(await forgetHandler(store, 'mail'), null);
      const { version } = await store.catalog();
      equal(await forgetHandler(store, 'book'), 2);
      const after = await store.catalog();
      deepEqual(known(after), ['mail: payout.*,transaction.completed']);
      ok(after.version > version);
      deepEqual(await states(store, dead), { book: 'skipped 1' });
      deepEqual(await states(store, done), { book: 'done 1', mail: 'pending 0' });
      deepEqual(await states(store, pending), { book: 'skipped 0' });
      equal(await forgetHandler(store, 'book'), 0);
    },
  },
  {
    title: 'forgetHandler() keeps a handler whose worker is late but was not declared dead',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store, [book]);
      await advance(LEASE_MS + 1000);
      equal(await forgetHandler(store, 'book'), null);
      equal((await worker.heartbeat()).alive, true);
      deepEqual(await catalogOf(store), ['book: transaction.*']);
    },
  },
];
