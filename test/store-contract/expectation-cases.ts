import { deepEqual, equal, notEqual, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type {
  ClaimedPoll,
  ExpectationFilter,
  ExpectationPage,
  IncomingEvent,
  InboxStore,
  NewExpectation,
  PollOutcome,
  PollSettlement,
  SettledPoll,
  StoredExpectation,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming, TestWorker } from './contract-fixtures.ts';
import type { InboxContractCase } from './contract-fixtures.ts';

/** An expectation whose first poll is due at once. The given fields replace the defaults. */
export function expected(fields: Partial<NewExpectation> = {}): NewExpectation {
  return {
    company: 'acme',
    reference: `order ${randomUUID()}`,
    transactionId: null,
    dueInMs: null,
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
  { company, reference }: Pick<NewExpectation, 'company' | 'reference'>,
): Promise<StoredExpectation> {
  const found = await expectations.find(company, reference);
  ok(found, `there is no expectation ${company} ${reference}`);
  return found;
}

/** An event that fulfils the expectations of its transaction and reference, and is handled once per transaction. */
export function fulfilling(event: Parameters<typeof incoming>[0] = {}): IncomingEvent {
  return incoming({ fulfils: true, handlers: [], oncePerTransaction: true, ...event });
}

/** The lease of the polls in these cases, in milliseconds. */
export const POLL_LEASE_MS = 45_000;

/** Claims due polls. */
export async function claimPolls(
  { expectations }: InboxStore,
  limit = 100,
): Promise<readonly ClaimedPoll[]> {
  return expectations.claimPolls({ limit, leaseMs: POLL_LEASE_MS });
}

/** Claims the only poll that is due. */
export async function claimPoll(store: InboxStore): Promise<ClaimedPoll> {
  const claimed = await claimPolls(store);
  equal(claimed.length, 1, `${claimed.length} polls are due, not one`);
  return claimed[0]!;
}

const TYPES = ['transaction.completed', 'transaction.declined'];

export async function settle(
  { expectations }: InboxStore,
  { seq, token }: ClaimedPoll,
  outcome: PollOutcome,
  more: Partial<PollSettlement> = {},
): Promise<SettledPoll> {
  const lease = { seq, token };
  return expectations.settlePoll({
    lease,
    outcome,
    event: null,
    eventTypes: TYPES,
    keepLost: false,
    ...more,
  });
}

/** Settles a poll that found an event of the transaction. */
export async function settleFound(
  store: InboxStore,
  claimed: ClaimedPoll,
  transactionId: string,
  eventType = 'transaction.completed',
  fields: Parameters<typeof incoming>[0] = {},
): Promise<SettledPoll> {
  const id = `poll:${transactionId}:${eventType}`;
  const raw = Buffer.from(JSON.stringify({ id, unique: randomUUID() }));
  const event = fulfilling({
    id,
    eventType,
    orderingKey: transactionId,
    raw,
    source: 'poll',
    ...fields,
  });
  return settle(store, claimed, { result: 'event', detail: null, next: 'end' }, { event });
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

/** How expectations are stored, changed, listed, requested and pruned. */
export const expectationCases: readonly InboxContractCase[] = [
  {
    title: 'EX-01 EX-20 expect() stores an expectation, and a repeated call changes nothing',
    async run({ store, another }) {
      const first = expected({ reference: 'Zahlung 1 _%', dueInMs: 4000 });
      const other = (await another()).expectations;
      equal(await store.expectations.expect({ ...first, firstPollInMs: 15_000 }), true);
      const found = (await other.find('acme', first.reference))!;
      const { createdAt, nextPollAt, ageMs, dueBy, ...rest } = found;
      const { firstPollInMs: _, dueInMs: _d, ...fields } = first;
      const ended = { fulfilled: null, cancelled: null };
      const none = { ...ended, lastPoll: null, contradiction: null, otherEventId: null };
      const state = { state: 'waiting', request: 'never', polls: 0, lostPolls: 0 };
      deepEqual(rest, { ...fields, ...state, ...none });
      equal(dueBy!.getTime() - createdAt.getTime(), 4000);
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
    title: 'EX-16 expect() reopens a cancelled expectation as a new expectation',
    async run({ store, another }) {
      const first = await expectOne(store, { transactionId: 'tx 1' });
      await settle(store, await claimPoll(store), unknown(1000, '404'));
      equal(await store.expectations.cancel('acme', first.reference), true);
      equal(await store.expectations.attach('acme', first.reference, 'tx 1'), 'cancelled');
      const { expectations } = await another();
      equal(await expectations.expect({ ...first, transactionId: null }), true);
      const { state, polls, lastPoll, transactionId } = await stored(store, first);
      deepEqual([state, polls, lastPoll, transactionId], ['waiting', 0, null, null]);
      equal((await claimPoll(store)).expectation.reference, first.reference);
      equal(await expectations.attach('acme', first.reference, 'tx 2'), 'attached');
    },
  },
  {
    title:
      'EX-01 of 20 concurrent calls of expect() with one reference, exactly one stores an expectation',
    async run({ store, another }) {
      const stores = [store, await another()];
      const one = expected();
      for (let round = 0; round < 2; round += 1) {
        const calls = Array.from({ length: 20 }, (_, n) => stores[n % 2]!.expectations.expect(one));
        equal((await Promise.all(calls)).filter(Boolean).length, 1);
        equal((await claimPoll(store)).expectation.reference, one.reference);
        await store.expectations.cancel('acme', one.reference);
      }
    },
  },
  {
    title: 'EX-01 an expectation of a transaction is stored if and only if the transaction commits',
    needs: 'transactional',
    async run({ store, effects }) {
      const worker = await TestWorker.start(store);
      const inside = expected();
      const cancelled = await expectOne(store);
      await store.expectations.cancel('acme', cancelled.reference);
      await store.receive([incoming()]);
      const lease = await worker.claimOne();
      const commit = (last: () => void) =>
        store.commit(lease, (tx) => {
          const written = effects!.write(tx, 'ordered');
          const calls = () => [
            store.expectations.expect(inside, tx),
            store.expectations.expect(cancelled, tx),
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
      equal((await stored(store, cancelled)).state, 'cancelled');
      await commit(() => {});
      equal((await stored(store, inside)).state, 'waiting');
      equal((await stored(store, cancelled)).state, 'waiting');
      equal((await claimPolls(store)).length, 2);
    },
  },
  {
    title: 'EX-01 attach() sets a transaction id once, and keeps the first id',
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
    title:
      'EX-15 attach() returns a conflict for the id of another expectation, unless that expectation is cancelled',
    async run({ store, another }) {
      const first = await expectOne(store, { transactionId: 'tx 1' });
      const second = await expectOne(store);
      const { expectations } = await another();
      const attach = () => expectations.attach('acme', second.reference, 'tx 1');
      equal(await attach(), 'conflict');
      equal((await stored(store, second)).transactionId, null);
      await store.receive([fulfilling({ orderingKey: 'tx 1', reference: null })]);
      equal((await stored(store, first)).state, 'fulfilled');
      equal((await stored(store, second)).state, 'waiting');
      equal(await attach(), 'conflict');
      const cancelled = await expectOne(store, { transactionId: 'tx 2' });
      await expectations.cancel('acme', cancelled.reference);
      equal(await expectations.attach('acme', second.reference, 'tx 2'), 'attached');
    },
  },
  {
    title:
      'EX-01 EX-21 cancel() ends a waiting or overdue expectation and its scheduled poll, and stores who ended it and why',
    async run({ store, another }) {
      const waiting = await expectOne(store, { transactionId: 'tx' });
      const { expectations } = await another();
      equal(await expectations.cancel('umbrella', waiting.reference), false);
      equal(await expectations.cancel('acme', waiting.reference), true);
      equal(await expectations.cancel('acme', waiting.reference), false);
      deepEqual(await claimPolls(store), []);
      const overdue = await expectOne(store);
      await settle(store, await claimPoll(store), { ...unknown('overdue'), result: 'pending' });
      equal((await stored(store, overdue)).state, 'overdue');
      const reason = { by: 'ann \0', note: 'The customer paid in cash.' };
      equal(await expectations.cancel('acme', overdue.reference, reason), true);
      equal(await expectations.cancel('acme', overdue.reference), false);
      const fulfilled = await expectOne(store, { transactionId: 'paid' });
      await store.receive([fulfilling({ orderingKey: 'paid' }), fulfilling({ orderingKey: 'tx' })]);
      equal(await expectations.cancel('acme', fulfilled.reference), false);
      const states = [waiting, overdue, fulfilled].map(
        async (one) => (await stored(store, one)).state,
      );
      deepEqual(await Promise.all(states), ['cancelled', 'cancelled', 'fulfilled']);
      const { at, ...kept } = (await stored(store, overdue)).cancelled!;
      deepEqual(kept, reason);
      equal(at >= (await stored(store, overdue)).createdAt, true);
      const { at: _, ...none } = (await stored(store, waiting)).cancelled!;
      deepEqual(none, { by: null, note: null });
      equal((await stored(store, fulfilled)).cancelled, null);
      const counts = await store.expectations.counts();
      deepEqual([counts.overdueUnpaid.count, counts.overdueUnknown.count], [0, 0]);
      const late = await store.receive([fulfilling({ id: 'late', reference: overdue.reference })]);
      deepEqual([late[0]!.outcome, late[0]!.fulfilled], ['stored', []]);
      const again = { ...overdue, schedule: [1000], dueInMs: null, firstPollInMs: 1000 };
      equal(await expectations.expect(again), true);
      equal((await stored(store, overdue)).cancelled, null);
    },
  },
  {
    title:
      'EX-15 a request that runs while its expectation is cancelled and reopened is not sent twice',
    async run({ store, another, advance }) {
      const one = await expectOne(store);
      const other = (await another()).expectations;
      const start = async () => (await other.startRequest('acme', one.reference, 60_000))!;
      const reopen = async () => {
        equal(await other.cancel('acme', one.reference), true);
        equal(
          await store.expectations.expect({
            ...one,
            schedule: [1000],
            dueInMs: null,
            firstPollInMs: 1000,
          }),
          true,
        );
      };
      const first = await start();
      await reopen();
      const second = await start();
      deepEqual([second.previous, second.token], ['running', null]);
      equal(await store.expectations.endRequest(one, first.token!, 'unknown'), true);
      await reopen();
      const third = await start();
      equal(third.previous, 'never');
      equal(await store.expectations.endRequest(one, first.token!, 'cancelled'), false);
      await reopen();
      await advance(61_000);
      const fourth = await start();
      equal(fourth.previous, 'unknown');
      equal(await store.expectations.endRequest(one, third.token!, 'cancelled'), false);
      equal(await store.expectations.endRequest(one, fourth.token!, 'accepted'), true);
    },
  },
  {
    title:
      'EX-15 one request for a payment runs at a time, and only the token of the request can end it',
    async run({ store, another, advance }) {
      const one = await expectOne(store);
      const other = (await another()).expectations;
      const start = async (leaseMs = 60_000) =>
        (await other.startRequest('acme', one.reference, leaseMs))!;
      equal(await other.startRequest('acme', 'nobody', 1000), undefined);
      const first = await start();
      deepEqual([first.previous, first.expectation.reference], ['never', one.reference]);
      equal((await stored(store, one)).request, 'running');
      const second = await start();
      deepEqual([second.previous, second.token], ['running', null]);
      equal(await store.expectations.endRequest(one, first.token! + 1, 'answered'), false);
      equal(await store.expectations.endRequest(one, first.token!, 'answered'), true);
      equal(await store.expectations.endRequest(one, first.token!, 'answered'), false);
      const third = await start(1000);
      equal(third.previous, 'answered');
      notEqual(third.token, first.token);
      await advance(2000);
      const fourth = await start();
      equal(fourth.previous, 'unknown');
      equal(await other.endRequest(one, third.token!, 'cancelled'), false);
      equal(await other.endRequest(one, fourth.token!, 'unknown'), true);
      const fifth = await start();
      equal(fifth.previous, 'unknown');
      equal(await other.endRequest(one, fifth.token!, 'never'), true);
      const sixth = await start();
      equal(sixth.previous, 'never');
      equal(await other.endRequest(one, sixth.token!, 'accepted'), true);
      const last = await start();
      deepEqual([last.previous, last.token], ['accepted', null]);
    },
  },
  {
    title: 'EX-01 of concurrent calls of attach() with different ids, exactly one attaches its id',
    async run({ store, another }) {
      const stores = [store, await another()];
      for (let round = 0; round < 5; round += 1) {
        const { reference } = await expectOne(store);
        const ids = Array.from({ length: 10 }, (_, n) => `tx ${round} ${n}`);
        const results = await Promise.all(
          ids.map((id, n) => stores[n % 2]!.expectations.attach('acme', reference, id)),
        );
        const attached = ids.filter((_, n) => results[n] === 'attached');
        equal(results.filter((result) => result === 'conflict').length, ids.length - 1);
        deepEqual(attached, [(await store.expectations.find('acme', reference))!.transactionId]);
      }
    },
  },
  {
    title:
      'EX-15 no request is granted after an id is attached to the expectation or the expectation ends',
    async run({ store }) {
      const { expectations } = store;
      const start = async ({ reference }: NewExpectation) => {
        const started = await expectations.startRequest('acme', reference, 60_000);
        return [started?.previous, started?.token === null];
      };
      deepEqual(await start(await expectOne(store, { transactionId: 'tx' })), ['accepted', true]);
      const attached = await expectOne(store);
      await start(attached);
      await expectations.attach('acme', attached.reference, 'tx 2');
      deepEqual(await start(attached), ['accepted', true]);
      const paid = await expectOne(store);
      await store.receive([fulfilling({ reference: paid.reference, orderingKey: 'tx 3' })]);
      deepEqual(await start(paid), ['never', true]);
      const failed = await expectOne(store);
      const { token } = (await expectations.startRequest('acme', failed.reference, 60_000))!;
      equal(await expectations.endRequest(failed, token!, 'cancelled'), true);
      const { state, nextPollAt } = await stored(store, failed);
      deepEqual([state, nextPollAt], ['cancelled', null]);
      deepEqual(await start(failed), ['never', true]);
      equal(await expectations.expect(failed), true);
      deepEqual(await start(failed), ['never', false]);
    },
  },
  {
    title: 'EX-15 the end of a request does not cancel a payment that got an id or an event',
    async run({ store }) {
      const { expectations } = store;
      const one = await expectOne(store);
      const { token } = (await expectations.startRequest('acme', one.reference, 60_000))!;
      await store.receive([fulfilling({ reference: one.reference, orderingKey: 'tx' })]);
      equal(await expectations.endRequest(one, token!, 'cancelled'), true);
      equal((await stored(store, one)).state, 'fulfilled');
    },
  },
  {
    title: 'EX-15 of 20 concurrent requests for one payment, one is granted',
    async run({ store, another }) {
      const stores = [store, await another()];
      const { reference } = await expectOne(store);
      const started = await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          stores[n % 2]!.expectations.startRequest('acme', reference, 60_000),
        ),
      );
      equal(started.filter((one) => one!.token !== null).length, 1);
    },
  },
  {
    title:
      'EX-07 EX-12 list() applies every filter, and returns the newest expectation first, page by page',
    async run({ store, advance }) {
      const later = { firstPollInMs: 1000 };
      const a = await expectOne(store, { reference: 'a_1', transactionId: 'tx%a', ...later });
      await store.receive([fulfilling({ id: 'paid a', orderingKey: 'tx%a', fulfils: false })]);
      await advance(5000);
      await expectOne(store, { reference: 'b_1', company: 'umbrella', ...later });
      await store.expectations.cancel('umbrella', 'b_1');
      for (const reference of ['c', 'd', 'e', 'f']) {
        await expectOne(store, { reference, transactionId: `tx ${reference}`, ...later });
      }
      const fromPoll = fulfilling({ orderingKey: 'tx c', source: 'poll' });
      await store.receive([fromPoll, fulfilling({ orderingKey: 'tx d' })]);
      const half = new Date((await stored(store, a)).createdAt.getTime() + 2500);
      const claimed = await claimPoll(store);
      const { result } = await settleFound(store, claimed, 'tx%a', 'transaction.declined');
      equal(result, 'contradiction');
      await advance(5000);
      for (const one of await claimPolls(store)) {
        await settle(store, one, unknown(one.expectation.reference === 'f' ? 'overdue' : 60_000));
      }
      const list = async (filter: ExpectationFilter) => (await references(store, filter)).join();
      deepEqual(await references(store, {}, 2), ['f', 'e', 'd', 'c', 'b_1', 'a_1']);
      equal(await list({ company: 'umbrella' }), 'b_1');
      equal(await list({ transactionId: 'tx c', state: 'fulfilled' }), 'c');
      equal(await list({ transactionId: 'tx ' }), '');
      equal(await list({ state: 'waiting' }), 'e');
      equal(await list({ state: 'waiting', company: 'umbrella' }), '');
      equal(await list({ state: 'overdue' }), 'f');
      equal(await list({ overdue: 'unknown' }), 'f');
      equal(await list({ overdue: 'unknown', state: 'waiting' }), '');
      equal(await list({ overdue: 'unpaid' }), '');
      equal(await list({ state: 'cancelled' }), 'b_1');
      equal(await list({ state: 'fulfilled' }), 'd,c,a_1');
      equal(await list({ state: 'fulfilled', from: half, search: 'tx' }), 'd,c');
      equal(await list({ fulfilledBy: 'poll' }), 'c');
      equal(await list({ fulfilledBy: 'webhook', company: 'acme' }), 'd,a_1');
      equal(await list({ contradictory: true }), 'a_1');
      equal(await list({ contradictory: true, state: 'waiting' }), '');
      equal(await list({ to: half }), 'a_1');
      equal(await list({ from: half, company: 'acme' }), 'f,e,d,c');
      equal(await list({ search: 'tx ' }), 'f,e,d,c');
      equal(await list({ search: 'a_' }), 'a_1');
      equal(await list({ search: 'A_' }), 'a_1');
      equal(await list({ search: 'TX ' }), '');
      // `_` and `%` are ordinary characters here, not wildcards.
      equal(await list({ search: 'tx%' }), 'a_1');
      equal(await list({ search: '_1' }), '');
    },
  },
  {
    title:
      'IN-40 prune() deletes ended expectations, and keeps waiting and overdue expectations, which can still be polled',
    async run({ store, advance }) {
      const open = await expectOne(store, { firstPollInMs: 3_000_000 });
      const overdue = await expectOne(store);
      await settle(store, await claimPoll(store), unknown('overdue'));
      const ended = await expectOne(store);
      await store.expectations.cancel('acme', ended.reference);
      const paid = await expectOne(store, { transactionId: 'tx' });
      await store.receive([fulfilling({ orderingKey: 'tx' })]);
      await advance(5000);
      await store.prune({ bodiesMs: 1000, tombstonesMs: 100_000, limit: 100 });
      equal((await stored(store, ended)).state, 'cancelled');
      equal(await store.expectations.pollNow([paid], [0]), 1);
      await settle(store, await claimPoll(store), unknown('end'));
      while ((await store.prune({ bodiesMs: 1000, tombstonesMs: 1000, limit: 10 })) > 0);
      deepEqual(await references(store), [overdue.reference, open.reference]);
      equal(await store.expectations.pollNow([open, overdue], [0, 0]), 2);
      equal((await claimPolls(store)).length, 2);
      equal(await store.expectations.expect(ended), true);
    },
  },
];
