import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type {
  ClaimedPoll,
  InboxStore,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

const SECONDS = 5;
/** How many payments there are at least. */
const PAYMENTS = 250;
const COMPANY = 'default';

/** A payment that the application expects. Its transaction id is known from the start, or attached later. */
interface Payment {
  readonly reference: string;
  readonly transactionId: string;
  readonly attached: boolean;
}

describe('concurrent operations on expectations in PostgreSQL', () => {
  const inboxes = usePostgresInboxes();

  it('EX-04 concurrent operations see no deadlock, and each stored event fulfils its expectation', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3].map(() => inboxes.open({ schema })));
    const until = performance.now() + SECONDS * 1000;
    const payments: Payment[] = [];
    // A busy machine needs more time for as many payments.
    const going = (): boolean => performance.now() < until || payments.length < PAYMENTS;
    const byReference = new Map<string, Payment>();
    const received = new Set<Payment>();
    const seen = new Set<string>();
    const some = (count: number): Payment[] =>
      Array.from({ length: Math.min(count, payments.length) }, () => {
        // Mostly new expectations, so that several operations use the same one.
        const back = Math.floor(Math.random() ** 3 * payments.length);
        return payments[payments.length - 1 - back]!;
      });
    const eventOf = ({ transactionId, reference }: Payment, source: 'webhook' | 'poll') =>
      incoming(source === 'poll' ? `poll:${transactionId}` : randomUUID(), {
        orderingKey: transactionId,
        oncePerTransaction: true,
        reference: Math.random() < 0.5 ? reference : null,
        raw: Buffer.from(randomUUID()),
        handlers: [],
        source,
        summary: null,
        fulfils: true,
      });
    const receive = async (store: InboxStore): Promise<void> => {
      while (going()) {
        const chosen = some(10);
        await store.receive(chosen.map((payment) => eventOf(payment, 'webhook')));
        for (const payment of chosen) received.add(payment);
      }
    };
    const create = async (store: InboxStore, goesOn: () => boolean): Promise<void> => {
      const client = await inboxes.openClient();
      while (goesOn()) {
        const payment = {
          reference: randomUUID(),
          transactionId: randomUUID(),
          attached: Math.random() < 0.3,
        };
        const transactionId = payment.attached ? null : payment.transactionId;
        byReference.set(payment.reference, payment);
        const schedule = { dueInMs: null, schedule: [10], firstPollInMs: 5 };
        const expectation = {
          company: COMPANY,
          reference: payment.reference,
          transactionId,
          ...schedule,
        };
        const tx = Math.random() < 0.5 ? client : undefined;
        if (tx) await client.query('BEGIN');
        await store.expectations.expect(expectation, tx);
        if (tx) await client.query('COMMIT');
        payments.push(payment);
        if (payment.attached) {
          await store.expectations.attach(COMPANY, payment.reference, payment.transactionId);
        }
      }
    };
    const poll = async (store: InboxStore, claimed: ClaimedPoll): Promise<void> => {
      const payment = byReference.get(claimed.expectation.reference)!;
      const event = eventOf(payment, 'poll');
      const found = received.has(payment) || Math.random() < 0.2;
      if (found) received.add(payment);
      // An expectation with an attached id does not become overdue here: an event that arrives before `attach` is found
      // only by a poll.
      const next = !payment.attached && Math.random() < 0.5 ? 'overdue' : going() ? 10 : 'end';
      const { state } = await store.expectations.settlePoll({
        lease: claimed,
        outcome: { result: found ? 'event' : 'pending', detail: null, next },
        event: found ? event : null,
        eventTypes: [event.eventType],
        keepLost: false,
      });
      seen.add(state);
    };
    const work = async (
      store: InboxStore,
      goesOn: () => boolean,
      claimed: (leases: number) => void = () => {},
    ): Promise<void> => {
      while (goesOn()) {
        for (let n = 0; n < 20 && goesOn(); n += 1) {
          const leases = await store.expectations.claimPolls({ limit: 20, leaseMs: 300 });
          claimed(leases.length);
          if (leases.length === 0) await new Promise((resolve) => setTimeout(resolve, 20));
          // The last round ends as if the process died while polls run.
          if (n === 19 && going()) break;
          await Promise.all(leases.map((lease) => poll(store, lease)));
        }
      }
    };
    const selection = ({ reference }: Payment) => ({ company: COMPANY, reference });
    const heartbeats = await startWorker(stores[0]!);
    const operations: ((store: InboxStore) => Promise<unknown>)[] = [
      (store) => store.expectations.pollNow(some(50).map(selection), Array<number>(50).fill(1)),
      (store) => store.expectations.pollNow(some(50).map(selection), Array<number>(50).fill(0)),
      async (store) => {
        const isCancelled = await store.expectations.cancel(COMPANY, some(1)[0]?.reference ?? '');
        if (isCancelled) seen.add('cancelled');
      },
      (store) => store.expectations.list({ filter: { state: 'waiting' }, limit: 50, after: null }),
      (store) => store.heartbeat(heartbeats),
      (store) => store.prune({ bodiesMs: 1500, tombstonesMs: 2500, limit: 100 }),
      (store) => store.stats(),
    ];
    await create(stores[0]!, () => payments.length < 100);
    await Promise.all([
      ...stores.flatMap((store) => [receive(store), create(store, going), work(store, going)]),
      ...operations.map(async (operate, n) => {
        while (going()) await operate(stores[n % 3]!);
      }),
    ]);
    // The polls that are left run until nothing is due.
    const [store] = stores as [InboxStore];
    let idle = 0;
    await work(
      store,
      () => idle < 30,
      (leases) => {
        idle = leases === 0 ? idle + 1 : 0;
      },
    );
    for (const payment of payments) {
      const one = await store.expectations.find(COMPANY, payment.reference);
      if (one === undefined) continue;
      if (received.has(payment) && one.state !== 'cancelled') {
        expect([payment, one.state, one.nextPollAt]).toEqual([payment, 'fulfilled', null]);
      }
    }
    expect([...seen]).toEqual(expect.arrayContaining(['fulfilled', 'overdue', 'cancelled']));
    await inboxes.close();
    const counted = `SELECT deadlocks::integer FROM pg_stat_database WHERE datname = current_database()`;
    expect(await inboxes.query(counted)).toEqual([{ deadlocks: 0 }]);
  });
});
