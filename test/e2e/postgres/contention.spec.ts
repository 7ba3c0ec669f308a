import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import type {
  ClaimedPoll,
  InboxStore,
  Lease,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import {
  freshSchema,
  incoming,
  startWorker,
  usePostgresInboxes,
} from '../../support/postgres/postgres-inboxes.js';

const inboxes = usePostgresInboxes();

const SECONDS = 5;
/** The minimum number of payments. */
const PAYMENTS = 250;
const COMPANY = 'default';

/** A payment that the application expects. Its transaction id is known from the start, or attached later. */
interface Payment {
  readonly reference: string;
  readonly transactionId: string;
  readonly attached: boolean;
}

describe('concurrent operations on expectations in PostgreSQL', () => {
  it('EX-04 concurrent operations cause no deadlock, and each stored event fulfils its expectation', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3].map(() => inboxes.open({ schema })));
    const until = performance.now() + SECONDS * 1000;
    const payments: Payment[] = [];
    // A busy machine needs more time to create this number of payments.
    const going = (): boolean => performance.now() < until || payments.length < PAYMENTS;
    const byReference = new Map<string, Payment>();
    const received = new Set<Payment>();
    const seen = new Set<string>();
    const some = (count: number): Payment[] =>
      Array.from({ length: Math.min(count, payments.length) }, () => {
        // New expectations are chosen more often, so that several operations use the same expectation.
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
      // An expectation with an attached id never becomes overdue here, because only a poll finds an event that arrives
      // before `attach`.
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
    // The remaining polls run until no poll is due.
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

const HANDLERS = ['book', 'mail'];

describe('concurrent operations in PostgreSQL', () => {
  it('IN-35 concurrent operations cause no deadlock, and every delivery is finished at the end', async () => {
    const schema = freshSchema();
    const stores = await Promise.all([1, 2, 3].map(() => inboxes.open({ schema })));
    const until = performance.now() + SECONDS * 1000;
    const going = (): boolean => performance.now() < until;
    const known: string[] = [];
    const some = (count: number) =>
      Array.from({ length: count }, () => ({
        company: 'default',
        id: known[Math.floor(Math.random() * known.length)] ?? 'none',
        handlers: Math.random() < 0.5 ? HANDLERS : HANDLERS.toReversed(),
      }));
    const settle = async (store: InboxStore, lease: Lease): Promise<void> => {
      const choice = lease.seq % 10;
      if (choice < 2) await store.fail(lease, { error: 'no', retryInMs: choice === 0 ? null : 20 });
      else if (choice === 2) await store.release(lease);
      else if (choice === 3) {
        // The worker sends no heartbeats, so its lease may be lost.
        await store
          .commit(lease, () => {})
          .catch((error: { code?: string }) => {
            if (error.code !== 'lease_lost') throw error;
          });
      } else await store.complete(lease);
    };
    const receive = async (store: InboxStore): Promise<void> => {
      const worker = await startWorker(store);
      while (going()) {
        const events = Array.from({ length: 10 }, () =>
          incoming(randomUUID(), {
            orderingKey: `k${Math.floor(Math.random() * 20)}`,
            handlers: HANDLERS,
            assign: { workerId: worker, handlers: ['book'] },
          }),
        );
        const receipts = await store.receive(events);
        known.push(...events.map(({ id }) => id));
        await Promise.all(
          receipts.flatMap(({ claimed }) => claimed).map((lease) => settle(store, lease)),
        );
      }
    };
    const work = async (store: InboxStore): Promise<void> => {
      // Each round ends as if the process died while deliveries run.
      for (let round = 0; going(); round += 1) {
        const worker = await startWorker(store, 1000);
        for (let n = 0; n < 20 && going(); n += 1) {
          const wanted = HANDLERS.map((handler) => ({ handler, limit: 20 }));
          const leases = await store.claim({ workerId: worker, wanted });
          const suspect = await store.claimSuspect({ workerId: worker, handlers: HANDLERS });
          if (n === 19) break;
          await Promise.all([...leases, suspect ?? []].flat().map((lease) => settle(store, lease)));
        }
      }
    };
    const heartbeats = async (store: InboxStore): Promise<void> => {
      const worker = await startWorker(store);
      while (going()) await store.heartbeat(worker);
    };
    const operations: ((store: InboxStore) => Promise<unknown>)[] = [
      (store) => store.redrive(some(50), { force: true, dueInMs: Array<number>(50).fill(0) }),
      (store) => store.redrive(some(50), { force: false, dueInMs: Array<number>(50).fill(5) }),
      (store) => store.skip(some(50)),
      (store) => store.skip(some(50)),
      (store) => store.pause('mail', true).then(() => store.pause('mail', false)),
      (store) => store.prune({ bodiesMs: 500, tombstonesMs: 2000, limit: 100 }),
      (store) => store.stats(),
      (store) => store.activity(60, 1e9),
    ];
    await Promise.all([
      ...stores.map((store) => receive(store)),
      ...stores.flatMap((store) => [work(store), work(store)]),
      heartbeats(stores[0]!),
      ...operations.map(async (operate, n) => {
        while (going()) await operate(stores[n % 3]!);
      }),
    ]);
    expect(known.length).toBeGreaterThan(100);
    // All remaining deliveries can be completed, because none waits for an ordering key without a running delivery.
    // This uses a new store, because the other stores may have paused their slow search for lost deliveries.
    const store = await inboxes.open({ schema });
    await store.pause('mail', false);
    await inboxes.query(`UPDATE ${schema}.worker SET heartbeat_at = heartbeat_at - 3600000`);
    const worker = await startWorker(store);
    await store.heartbeat(worker);
    for (let idle = 0; idle < 30;) {
      const wanted = HANDLERS.map((handler) => ({ handler, limit: 500 }));
      const leases = await store.claim({ workerId: worker, wanted });
      const suspect = await store.claimSuspect({ workerId: worker, handlers: HANDLERS });
      if (suspect !== null) leases.push(suspect);
      await Promise.all(leases.map((lease) => store.complete(lease)));
      idle = leases.length > 0 ? 0 : idle + 1;
    }
    const left = await inboxes.query(`
      SELECT state, waiting, count(*)::integer FROM ${schema}.delivery
       WHERE state IN ('pending', 'running') GROUP BY state, waiting`);
    expect(left).toEqual([]);
  });

  it('receive() stores events while retire() waits for a heartbeat that has locked the worker', async () => {
    const schema = freshSchema();
    const store = await inboxes.open({ schema });
    const worker = await startWorker(store);
    const heartbeat = await inboxes.openClient();
    await heartbeat.query('BEGIN');
    await heartbeat.query(`SELECT FROM ${schema}.worker WHERE id = '${worker}' FOR UPDATE`);
    let retired = false;
    const retiring = store.retire(worker, 0).then(() => {
      retired = true;
    });
    const waits = `SELECT FROM pg_locks WHERE NOT granted AND database =
      (SELECT oid FROM pg_database WHERE datname = current_database()) OR NOT granted AND database IS NULL`;
    while ((await inboxes.query(waits)).length === 0);
    await store.receive([incoming('meanwhile')]);
    expect(retired).toBe(false);
    await heartbeat.query('COMMIT');
    await retiring;
  });
});
