import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import type { SettleResult } from '../../../inbox/store/inbox-store.js';
import { runBatch } from '../thread/batch.js';
import type { Call } from '../thread/messages.js';

let inbox: SqliteDatabase;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
});
afterEach(() => inbox.close());

/** The pending deliveries, in the order of their receipt. */
const pending = () =>
  inbox.all<{ id: string; queue: string; crashes: number }>(
    `SELECT e.id, d.queue, d.crashes FROM payments_inbox_delivery d JOIN payments_inbox_event e ON e.seq = d.event
     WHERE d.state = 'pending' ORDER BY e.seq`,
  );

describe('the deliveries of one ordering key on SQLite', () => {
  it('IN-33 all deliveries of an ordering key except one wait, so that claims do not read the waiting deliveries', () => {
    const worker = inbox.worker();
    for (let n = 0; n < 50; n += 1) inbox.receive({ id: `k${n}`, orderingKey: 'k' });
    inbox.receive({ id: 'other', orderingKey: 'free' });
    expect(inbox.all("SELECT 1 FROM payments_inbox_delivery WHERE queue = 'due'")).toHaveLength(2);
    expect(inbox.claim(worker).map(({ id }) => id)).toEqual(['k0', 'other']);
    inbox.receive({ id: 'late', orderingKey: 'k' });
    expect(inbox.claim(worker)).toEqual([]);
    expect(pending().every(({ queue }) => queue === 'waiting')).toBe(true);
  });

  it('IN-33 each claim makes about 500 due deliveries of a busy ordering key wait', () => {
    const worker = inbox.worker();
    const selections = Array.from({ length: 1300 }, (_, n) => {
      const id = inbox.receive({ id: `k${n}`, orderingKey: 'k' });
      return { company: 'acme', id, handlers: ['book'] };
    });
    inbox.receive({ id: 'other' });
    expect(inbox.claim(worker, 1)).toHaveLength(1);
    // The deliveries are now as after a redrive at a time when their key was not busy.
    inbox.connection.exec(
      "UPDATE payments_inbox_delivery SET queue = 'due' WHERE state = 'pending'",
    );
    expect(inbox.claim(worker, 1)).toEqual([]);
    expect(inbox.claim(worker, 1)).toEqual([]);
    expect(inbox.claim(worker, 1).map(({ id }) => id)).toEqual(['other']);
    expect(inbox.store().skip(selections)).toBe(1299);
  });

  it('IN-16 the deliveries of one ordering key run in the order of their receipt', () => {
    const worker = inbox.worker();
    for (const id of ['a', 'b', 'c']) {
      inbox.now += 1;
      inbox.receive({ id, orderingKey: 'k' });
    }
    const order: string[] = [];
    for (let n = 0; n < 5; n += 1) {
      inbox.now += 1;
      const [lease] = inbox.claim(worker);
      order.push(lease!.id);
      if (n < 2) inbox.receive({ id: `late ${n}`, orderingKey: 'k' });
      const result = inbox.store().complete(lease!);
      expect(result).toEqual({ settled: true, nextDue: n < 4 });
    }
    expect(order).toEqual(['a', 'b', 'c', 'late 0', 'late 1']);
  });

  it('the deliveries of one ordering key do not wait for a suspect, which only claimSuspect leases', async () => {
    const [worker, other] = [inbox.worker(1000), inbox.worker(3_600_000)];
    inbox.receive({ id: 'suspect', orderingKey: 'k' });
    inbox.claim(worker);
    inbox.now += 1500;
    await inbox.store().heartbeat(other);
    inbox.receive({
      id: 'next',
      orderingKey: 'k',
      assign: { workerId: other, handlers: ['book'] },
    });
    expect(pending()).toEqual([
      { id: 'suspect', queue: 'suspect', crashes: 1 },
      { id: 'next', queue: 'due', crashes: 0 },
    ]);
    expect(inbox.claim(other).map(({ id }) => id)).toEqual(['next']);
  });

  it('the next claim makes a redriven delivery wait while another delivery of its ordering key runs', () => {
    const worker = inbox.worker();
    inbox.receive({ id: 'dead', orderingKey: 'k' });
    const [lease] = inbox.claim(worker);
    inbox.store().fail(lease!, { error: 'no', retryInMs: null });
    inbox.receive({ id: 'running', orderingKey: 'k' });
    inbox.claim(worker);
    const selections = [{ company: 'acme', id: 'dead', handlers: ['book', 'mail'] }];
    expect(inbox.store().redrive(selections, { force: false, dueInMs: [0] })).toBe(2);
    expect(inbox.claim(worker)).toEqual([]);
    expect(pending()).toEqual([
      { id: 'dead', queue: 'waiting', crashes: 0 },
      { id: 'dead', queue: 'due', crashes: 0 },
    ]);
  });

  it('an outcome makes a waiting delivery claimable, even if the delivery began to wait in the same batch', async () => {
    const worker = inbox.worker();
    const assign = { workerId: worker, handlers: ['book'] };
    for (const orderingKey of ['a', 'b', 'c'])
      inbox.receive({ id: orderingKey, orderingKey, assign });
    const complete = (seq: number): Call => ({
      name: 'complete',
      args: [{ seq, handler: 'book', token: 1 }],
    });
    const receive: Call = {
      name: 'receive',
      args: [[inbox.event({ id: 'late', orderingKey: 'b' })]],
    };
    inbox.receive({ id: 'due', orderingKey: 'c' });
    inbox.connection.exec(
      "UPDATE payments_inbox_delivery SET queue = 'due' WHERE state = 'pending'",
    );
    const wanted = [{ handler: 'book', limit: 1 }];
    const claim: Call = { name: 'claim', args: [{ workerId: worker, wanted }] };
    /** Whether the first outcome and the last one released a delivery. */
    const nextDue = async (calls: readonly Call[]) => {
      const { outcomes } = await runBatch(inbox.connection, calls, inbox.times, 1000);
      return [outcomes[0], outcomes[2]].map(
        (outcome) => (outcome as { value: SettleResult }).value.nextDue,
      );
    };
    // The first outcome finds that no delivery of the handler waits.
    expect(await nextDue([complete(1), receive, complete(2)])).toEqual([false, true]);
    inbox.receive({ id: 'd', orderingKey: 'd', assign });
    expect(await nextDue([complete(6), claim, complete(3)])).toEqual([false, true]);
  });
});
