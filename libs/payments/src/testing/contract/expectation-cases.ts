import { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { expectationEventId, POLL_HANDLER } from '../../inbox/store/expectation-store.js';
import type {
  ExpectationFilter,
  ExpectationPage,
  InboxStore,
  NewExpectation,
  PollOutcome,
  StoredExpectation,
} from '../../inbox/store/inbox-store.js';
import { incoming, REDRIVE_FORCED, TestWorker } from './contract-fixtures.js';
import type { InboxContractCase } from './contract-fixtures.js';

/** An expectation whose first poll is due at once. The given fields replace the defaults. */
export function expected(fields: Partial<NewExpectation> = {}): NewExpectation {
  return {
    company: 'acme',
    reference: `order ${randomUUID()}`,
    transactionId: null,
    dueBy: null,
    schedule: [15_000, 60_000],
    firstPollInMs: 0,
    ...fields,
  };
}

/** Stores an expectation with the given fields, and returns it. */
export async function expectOne(
  { expectations }: InboxStore,
  fields: Partial<NewExpectation> = {},
): Promise<NewExpectation> {
  const expectation = expected(fields);
  equal(await expectations.expect(expectation), true);
  return expectation;
}

/** The stored expectation. Fails if there is none. */
export async function stored(
  { expectations }: InboxStore,
  { company, reference }: NewExpectation,
): Promise<StoredExpectation> {
  const found = await expectations.find(company, reference);
  ok(found, `there is no expectation ${company} ${reference}`);
  return found;
}

/** An event that fulfils the expectations of its transaction and reference. */
export function fulfilling(event: Parameters<typeof incoming>[0] = {}) {
  return incoming({ fulfils: true, handlers: [], ...event });
}

/** A poll without a result. */
export function unknown(next: PollOutcome['next'], detail: string | null = null): PollOutcome {
  return { result: 'unknown', detail, next };
}

/** The references of all pages. */
export async function references(
  { expectations }: InboxStore,
  filter: ExpectationFilter = {},
  limit = 1000,
): Promise<string[]> {
  const found: string[] = [];
  let after: string | null = null;
  do {
    const page: ExpectationPage = await expectations.list({ filter, limit, after });
    ok(page.expectations.length <= limit);
    found.push(...page.expectations.map(({ reference }) => reference));
    after = page.next;
  } while (after !== null);
  return found;
}

/** How expectations are stored, changed, listed, counted and pruned. */
export const expectationCases: readonly InboxContractCase[] = [
  {
    title: 'EX-01 expect stores an expectation, and repeating it changes nothing',
    async run({ store, another }) {
      const first = expected({ reference: 'Zahlung 1 _%', dueBy: new Date(1_900_000_000_123) });
      const other = (await another()).expectations;
      equal(await store.expectations.expect({ ...first, firstPollInMs: 15_000 }), true);
      const found = (await other.find('acme', first.reference))!;
      const { createdAt, nextPollAt, ageMs, ...rest } = found;
      const { firstPollInMs: _, ...fields } = first;
      const none = { lastPoll: null, fulfilled: null, contradiction: null };
      deepEqual(rest, { ...fields, state: 'waiting', polls: 0, ...none });
      const inMs = nextPollAt!.getTime() - createdAt.getTime();
      ok(inMs >= 14_990 && inMs < 16_000, `the first poll is due after ${inMs} ms`);
      const again = { ...expected({ transactionId: 'tx' }), reference: first.reference };
      equal(await other.expect(again), false);
      equal(await other.expect({ ...again, company: 'umbrella' }), true);
      const same = await stored(store, first);
      deepEqual({ ...same, nextPollAt, ageMs }, found);
      ok(same.nextPollAt!.getTime() - createdAt.getTime() >= 14_900);
    },
  },
  {
    title: 'EX-01 of 20 concurrent calls of expect with one reference, one stores it',
    async run({ store, another }) {
      const stores = [store, await another()];
      const one = expected();
      const calls = Array.from({ length: 20 }, (_, n) => stores[n % 2]!.expectations.expect(one));
      equal((await Promise.all(calls)).filter(Boolean).length, 1);
      const worker = await TestWorker.start(store);
      equal((await worker.claimOne(POLL_HANDLER)).id, expectationEventId(one.reference));
    },
  },
  {
    title: 'EX-01 expect and attach in a transaction are stored exactly if it commits',
    needs: 'transactional',
    async run({ store, effects }) {
      const worker = await TestWorker.start(store);
      const before = await expectOne(store);
      const inside = expected();
      await store.receive([incoming()]);
      const lease = await worker.claimOne();
      const commit = (last: () => void) =>
        store.commit(lease, (tx) => {
          const written = effects!.write(tx, 'ordered');
          const calls = () => [
            store.expectations.expect(inside, tx),
            store.expectations.attach('acme', before.reference, 'tx', tx),
          ];
          // A transaction on PostgreSQL is asynchronous, and one on SQLite is not.
          if (written instanceof Promise)
            return written.then(() => Promise.all(calls())).then(last);
          for (const call of calls()) call.catch(() => {});
          return last();
        });
      await commit(() => {
        throw new RangeError('the work failed');
      }).catch(() => {});
      equal(await store.expectations.find('acme', inside.reference), undefined);
      equal((await stored(store, before)).transactionId, null);
      await commit(() => {});
      equal((await stored(store, inside)).state, 'waiting');
      equal((await stored(store, before)).transactionId, 'tx');
      equal((await worker.claim([POLL_HANDLER])).length, 2);
    },
  },
  {
    title: 'EX-01 attach sets a transaction id once, and keeps the first one',
    async run({ store, another }) {
      const { reference } = await expectOne(store);
      const attach = async (transactionId: string, company = 'acme') =>
        (await another()).expectations.attach(company, reference, transactionId);
      equal(await attach('tx 1'), 'attached');
      equal(await attach('tx 1'), 'attached');
      equal(await attach('tx 2'), 'conflict');
      equal(await attach('tx 1', 'umbrella'), 'unknown');
      equal((await store.expectations.find('acme', reference))!.transactionId, 'tx 1');
    },
  },
  {
    title: 'EX-01 cancel ends a waiting or overdue expectation and its pending poll',
    async run({ store, another }) {
      const worker = await TestWorker.start(store);
      const waiting = await expectOne(store, { transactionId: 'tx' });
      const { expectations } = await another();
      equal(await expectations.cancel('umbrella', waiting.reference), false);
      equal(await expectations.cancel('acme', waiting.reference), true);
      equal(await expectations.cancel('acme', waiting.reference), false);
      deepEqual(await worker.claim([POLL_HANDLER]), []);
      const overdue = await expectOne(store);
      const lease = await worker.claimOne(POLL_HANDLER);
      await expectations.settlePoll(lease, { result: 'pending', detail: null, next: 'overdue' });
      equal(await expectations.cancel('acme', overdue.reference), true);
      const [fulfilled] = [await expectOne(store, { transactionId: 'paid' })];
      await store.receive([fulfilling({ orderingKey: 'paid' }), fulfilling({ orderingKey: 'tx' })]);
      equal(await expectations.cancel('acme', fulfilled.reference), false);
      const states = [waiting, overdue, fulfilled].map(
        async (one) => (await stored(store, one)).state,
      );
      deepEqual(await Promise.all(states), ['cancelled', 'cancelled', 'fulfilled']);
    },
  },
  {
    title: 'EX-07 EX-12 list applies every filter, newest first and page by page',
    async run({ store, advance }) {
      const worker = await TestWorker.start(store);
      const later = { firstPollInMs: 1000 };
      const a = await expectOne(store, { reference: 'a_1', transactionId: 'tx%a', ...later });
      await advance(5000);
      await expectOne(store, { reference: 'b_1', company: 'umbrella', ...later });
      await store.expectations.cancel('umbrella', 'b_1');
      for (const reference of ['c', 'd', 'e']) {
        await expectOne(store, { reference, transactionId: `tx ${reference}`, ...later });
      }
      const fromPoll = fulfilling({ orderingKey: 'tx c', source: 'poll' });
      await store.receive([fromPoll, fulfilling({ orderingKey: 'tx d' })]);
      const half = new Date((await stored(store, a)).createdAt.getTime() + 2500);
      const lease = await worker.claimOne(POLL_HANDLER);
      const contradiction = {
        result: 'contradiction',
        detail: 'declined',
        next: 'overdue',
      } as const;
      await store.expectations.settlePoll(lease, contradiction);
      const list = async (filter: ExpectationFilter) => (await references(store, filter)).join();
      deepEqual(await references(store, {}, 2), ['e', 'd', 'c', 'b_1', 'a_1']);
      equal(await list({ company: 'umbrella' }), 'b_1');
      equal(await list({ transactionId: 'tx c', state: 'fulfilled' }), 'c');
      equal(await list({ transactionId: 'tx ' }), '');
      equal(await list({ state: 'waiting' }), 'e');
      equal(await list({ state: 'overdue' }), 'a_1');
      equal(await list({ state: 'cancelled' }), 'b_1');
      equal(await list({ state: 'fulfilled' }), 'd,c');
      equal(await list({ fulfilledBy: 'poll' }), 'c');
      equal(await list({ fulfilledBy: 'webhook', company: 'acme' }), 'd');
      equal(await list({ contradictory: true }), 'a_1');
      equal(await list({ contradictory: true, state: 'waiting' }), '');
      equal(await list({ to: half }), 'a_1');
      equal(await list({ from: half, company: 'acme' }), 'e,d,c');
      equal(await list({ search: 'tx ' }), 'e,d,c');
      equal(await list({ search: 'a_' }), 'a_1');
      // `_` and `%` are ordinary characters here, no wildcards.
      equal(await list({ search: 'tx%' }), 'a_1');
      equal(await list({ search: '_1' }), '');
    },
  },
  {
    title:
      'EX-14 lists, counts and activity of events leave expectations out, and redrives ignore them',
    async run({ store, advance }) {
      const { reference } = await expectOne(store);
      const id = expectationEventId(reference);
      const before = await store.stats();
      deepEqual([before.deliveries, before.unhandled.count], [[], 0]);
      equal(before.oldestPendingMs, null);
      const settled = await expectOne(store);
      await store.expectations.cancel('acme', settled.reference);
      const handlers = [POLL_HANDLER, 'book'];
      equal(await store.redrive([{ company: 'acme', id, handlers }], REDRIVE_FORCED), 0);
      const { length } = await (await TestWorker.start(store)).claim(['book', POLL_HANDLER]);
      equal(length, 1);
      for (const filter of [{}, { ids: [id] }, { handler: POLL_HANDLER }, { search: 'expect' }]) {
        const page = await store.list({ filter, order: 'oldest', limit: 10, after: null });
        deepEqual(page, { events: [], next: null });
      }
      deepEqual((await store.stats()).deliveries, []);
      await advance(120_000);
      await store.summarize();
      for (const { total, handlers: active } of await store.activity(10)) {
        deepEqual([total.received, total.done, total.failed, active], [0, 0, 0, {}]);
      }
    },
  },
];
