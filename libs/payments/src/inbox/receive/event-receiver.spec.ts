import { Logger } from '@nestjs/common';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { turns as eventLoopTurns, until } from '../../../../../test/support/time/waiting.js';
import { receiver, throwNo } from '../../../../../test/support/inbox/receiver-harness.js';
import { VerifiedEvent } from './event-receiver.js';
import { logged } from '../../../../../test/support/log/captured-log.js';
import type { EventSource, StoreReceipt } from '../store/inbox-store.js';

Logger.overrideLogger(false);

const turns = () => eventLoopTurns(10);

describe('EventReceiver', () => {
  it('receive() rejects and does not throw if it is called without an event', async () => {
    const { made } = receiver();
    const nothing = undefined as unknown as VerifiedEvent;
    await expect(made.receive(nothing)).rejects.toThrow(TypeError);
  });

  it('a handler that fails at once starts only once for one webhook request', async () => {
    const { worker, receive, outcomes } = receiver();
    worker.handle = throwNo;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(worker.ran).toEqual(['a']);
    expect(outcomes.open).toBe(0);
  });

  it('a handler starts only once, even if its attempt ends before the receiver reads the receipt of the store', async () => {
    const { store, worker, receive } = receiver();
    worker.handle = throwNo;
    worker.hasSlots = false;
    const storeReceive = store.receive.bind(store);
    store.receive = async (events) => {
      const receipts = await storeReceive(events);
      await worker.claim();
      await turns();
      expect(worker.ran).toEqual(['a']);
      return receipts;
    };
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(worker.ran).toEqual(['a']);
  });

  it('WH-26 the receiver stops waiting for a handler when the deadline passes', async () => {
    const { runtime, worker, outcomes, receive, find } = receiver({ deadlineMs: 1000 });
    let end = () => {};
    worker.handle = () => new Promise<void>((resolve) => (end = resolve));
    for (let copy = 0; copy < 3; copy += 1) {
      const result = receive('a');
      result.catch(() => {});
      await turns();
      expect(outcomes.open).toBe(1);
      runtime.advance(1000);
      await expect(result).rejects.toMatchObject({ code: 'deadline_passed' });
      await turns();
      // The handler still runs. The receiver keeps no body of a copy in memory.
      expect(outcomes.open).toBe(0);
    }
    end();
    await turns();
    expect((await find('a')).deliveries[0]!.state).toBe('done');
    expect(worker.ran).toEqual(['a']);
  });

  it('the receiver ends the outcome watch of an event that was stored after its deadline', async () => {
    const { runtime, store, worker, outcomes, receive } = receiver({ deadlineMs: 1000 });
    worker.handle = () => new Promise<void>(() => {});
    const storeReceive = store.receive.bind(store);
    const stored = Promise.withResolvers<void>();
    store.receive = async (events) => {
      await stored.promise;
      return storeReceive(events);
    };
    const result = receive('a');
    result.catch(() => {});
    runtime.advance(1000);
    await expect(result).rejects.toMatchObject({ code: 'deadline_passed' });
    expect(outcomes.open).toBe(1);
    stored.resolve();
    await until(() => worker.ran.length > 0);
    await turns();
    expect(outcomes.open).toBe(0);
  });

  it('WH-23 an event with another id of the same transaction waits for the handlers of the first event', async () => {
    const { worker, outcomes, receive } = receiver({ oncePerTransaction: ['t'] });
    let end = () => {};
    worker.handle = () => new Promise<void>((resolve) => (end = resolve));
    const original = receive('a', { transactionId: 't-1' });
    await turns();
    let resolved = false;
    const copy = receive('b', { transactionId: 't-1' }).then((receipt) => {
      resolved = true;
      return receipt;
    });
    await turns();
    expect(resolved).toBe(false);
    end();
    expect(await copy).toEqual({ status: 'duplicate', id: 'a' });
    expect(await original).toEqual({ status: 'handled', id: 'a' });
    expect(outcomes.open).toBe(0);
  });

  it('WH-22 a copy of an event runs only the failed handler again', async () => {
    const { worker, receive } = receiver();
    worker.handle = throwNo;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    worker.handle = () => {};
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(worker.ran).toEqual(['a', 'a']);
  });

  it('WH-22 if a handler fails while the receiver looks up a copy of its event, the copy does not run the handler again', async () => {
    const { store, worker, receive } = receiver();
    const { promise, reject } = Promise.withResolvers<void>();
    worker.handle = () => promise;
    const find = store.find.bind(store);
    store.find = async (company, id) => {
      const stored = await find(company, id);
      await until(() => worker.ran.length > 0);
      reject(new Error('meanwhile'));
      await turns();
      return stored;
    };
    const results = await Promise.allSettled([receive('a'), receive('a')]);
    for (const result of results) {
      expect(result).toMatchObject({ reason: { code: 'handlers_failed' } });
    }
    await turns();
    expect(worker.ran).toEqual(['a']);
  });

  it('a copy of a dead event is rejected with 503 if the memory inbox deletes the dead event before the lookup', async () => {
    const { store, worker, receive } = receiver();
    const fail = store.fail.bind(store);
    store.fail = (lease, { error }) => fail(lease, { error, retryInMs: null });
    worker.handle = throwNo;
    await expect(receive('dead')).rejects.toMatchObject({ code: 'handlers_failed' });
    worker.handle = () => {};
    for (let n = 1; n < 1000; n += 1) await receive(`done-${n}`);
    // The inbox is full with 1,000 events, so the new event makes it delete the oldest.
    const [copy] = await Promise.allSettled([receive('dead'), receive('new')]);
    expect(copy).toMatchObject({ reason: { code: 'inbox_unavailable', status: 503 } });
    expect(await receive('dead')).toEqual({ status: 'handled', id: 'dead' });
    expect(worker.ran.filter((id) => id === 'dead')).toHaveLength(2);
  });

  it('the deadline counts from the arrival of the webhook request, even if the body arrives slowly', async () => {
    const { runtime, worker, receive } = receiver({ deadlineMs: 1000 });
    worker.handle = () => new Promise<void>(() => {});
    const result = receive('a', {}, { lateMs: 400 });
    result.catch(() => {});
    await turns();
    let rejected = false;
    result.catch(() => (rejected = true));
    runtime.advance(599);
    await turns();
    expect(rejected).toBe(false);
    runtime.advance(1);
    await expect(result).rejects.toMatchObject({ code: 'deadline_passed' });
  });

  it('receive() leaves no timer when it has resolved or rejected', async () => {
    const { runtime, worker, receive } = receiver();
    await receive('a');
    worker.handle = throwNo;
    await expect(receive('b')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(runtime.pending).toBe(0);
  });

  it('the memory inbox rejects an event while the worker does not run', async () => {
    const { worker, receive, store } = receiver();
    worker.working = false;
    await expect(receive('a')).rejects.toMatchObject({ code: 'inbox_unavailable', status: 503 });
    expect(await store.find('c', 'a')).toBeUndefined();
  });
});

describe('oncePerTransaction', () => {
  let log: string[] = [];
  beforeEach(() => {
    log = [];
    for (const level of ['warn', 'error', 'log'] as const) {
      jest.spyOn(Logger.prototype, level).mockImplementation((line: unknown) => {
        log.push(`${level}: ${String(line)}`);
      });
    }
  });
  afterEach(() => void jest.restoreAllMocks());

  const COMPLETED = { eventType: 'transaction.completed' };
  const repeats = () => log.filter((line) => line.includes('has the transaction of'));

  it('WH-23 a second transaction.completed event of a transaction is a duplicate, is added to the first event, and is logged', async () => {
    const { worker, receive, find, store } = receiver();
    expect(await receive('a', { transactionId: 'T' }, COMPLETED)).toMatchObject({
      status: 'handled',
    });
    expect(await receive('b', { transactionId: 'T' }, COMPLETED)).toEqual({
      status: 'duplicate',
      id: 'a',
    });
    expect(worker.ran).toEqual(['a']);
    expect((await find('a')).repeats.map(({ id }) => id)).toEqual(['b']);
    expect(await store.find('c', 'b')).toBeUndefined();
    expect(repeats()).toHaveLength(1);
    expect(repeats()[0]).toMatch(
      /^warn: Event b \(company c\) of type "transaction\.completed" .* event a, .*was not handled/,
    );
  });

  it('WH-23 second events of transactions are logged once per minute, company and type, with their count', async () => {
    const { receive, runtime } = receiver();
    const send = (id: string, company = 'c') =>
      receive(id, { transactionId: 'T' }, { ...COMPLETED, company });
    for (const id of ['a', 'b', 'd', 'e']) await send(id);
    expect(repeats()).toHaveLength(1);
    for (const id of ['a', 'b']) await send(id, 'other');
    expect(repeats()).toHaveLength(2);
    runtime.advance(60_000);
    expect(repeats()).toHaveLength(3);
    expect(repeats()[2]).toMatch(/^warn: Event e .*1 more/);
  });

  it('WH-23 an event with another type, another transaction or no transaction is not a duplicate', async () => {
    const { worker, receive } = receiver();
    const updated = { eventType: 'transaction.updated' };
    for (const id of ['a', 'b', 'd']) await receive(id, { transactionId: 'T' }, updated);
    await receive('e', { transactionId: 'T' }, COMPLETED);
    await receive('f', { transactionId: 'U' }, COMPLETED);
    await receive('g', {}, COMPLETED);
    await receive('h', {}, COMPLETED);
    await receive('i', { transactionId: '' }, COMPLETED);
    await receive('j', { transactionId: '' }, COMPLETED);
    await receive('k', { transactionId: 7 }, COMPLETED);
    await receive('l', { transactionId: 7 }, COMPLETED);
    expect(worker.ran).toEqual(['a', 'b', 'd', 'e', 'f', 'g', 'h', 'i', 'j', 'k', 'l']);
    expect(repeats()).toEqual([]);
  });

  it('WH-15 an event of another company with the same transaction id is not a duplicate', async () => {
    const { worker, receive } = receiver();
    await receive('a', { transactionId: 'T' }, COMPLETED);
    await receive('b', { transactionId: 'T' }, { ...COMPLETED, company: 'other' });
    expect(worker.ran).toEqual(['a', 'b']);
  });

  it('WH-23 if the first event of a transaction is stale, a later event of this transaction is not a duplicate', async () => {
    const { worker, receive } = receiver({}, 60_000);
    const stale = { ...COMPLETED, ageMs: 60_001 };
    expect(await receive('a', { transactionId: 'T' }, stale)).toMatchObject({ status: 'stale' });
    expect(await receive('b', { transactionId: 'T' }, COMPLETED)).toEqual({
      status: 'handled',
      id: 'b',
    });
    expect(worker.ran).toEqual(['b']);
  });
});

/** Receives an event of the module itself, with a body that contains `amount`. */
async function receiveOwn(
  harness: ReturnType<typeof receiver>,
  amount: number,
  { source = 'poll', eventType = 't' }: { source?: EventSource; eventType?: string } = {},
) {
  const { made, runtime, store } = harness;
  const timestamp = new Date(runtime.now()).toISOString();
  const event = { id: 'own', eventType, timestamp, data: { amount }, metadata: {} };
  const raw = Buffer.from(JSON.stringify(event));
  const verified = new VerifiedEvent('c', event, raw, runtime.monotonic(), {}, source);
  let outcome: StoreReceipt['outcome'] | null = null;
  await made.receiveOwn(verified, async (incoming) => {
    const [receipt] = await store.receive([incoming]);
    ({ outcome } = receipt!);
    return receipt!;
  });
  return outcome;
}

it('EX-04 receiveOwn() stores an event with its source, and does not wait for its handlers', async () => {
  const harness = receiver();
  harness.worker.handle = throwNo;
  expect(await receiveOwn(harness, 1)).toBe('stored');
  expect(await harness.find('own')).toMatchObject({ source: 'poll' });
});

it('EX-04 receiveOwn() works while the application closes, because no sender sends the event of a poll again', async () => {
  const harness = receiver();
  harness.worker.working = false;
  expect(await receiveOwn(harness, 1)).toBe('stored');
});

it('EX-04 a second event of the module with the same id and another body is a duplicate', async () => {
  const harness = receiver();
  await receiveOwn(harness, 1);
  await logged(async (log) => {
    expect(await receiveOwn(harness, 2)).toBe('conflict');
    expect(log.lines).toEqual([]);
  });
  const { raw } = await harness.find('own');
  expect(JSON.parse(raw!.toString())).toMatchObject({ data: { amount: 1 } });
});

it('EX-04 receiveOwn() rejects if the store rejects the event', async () => {
  const harness = receiver();
  harness.store.receive = throwNo;
  await expect(receiveOwn(harness, 1)).rejects.toThrow('no');
});

it('EX-07 receiveOwn() reports and logs nothing about an event that was not stored', async () => {
  const { made, runtime } = receiver();
  const event = {
    id: 'own',
    eventType: 't',
    timestamp: new Date(0).toISOString(),
    data: {},
    metadata: {},
  };
  const verified = new VerifiedEvent(
    'c',
    event,
    Buffer.from('{}'),
    runtime.monotonic(),
    {},
    'overdue',
  );
  await logged(async (log) => {
    await made.receiveOwn(verified, async () => null);
    expect(log.lines).toEqual([]);
  });
});
