import { Logger } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { turns as eventLoopTurns, until } from '../../../../../test/support/time/waiting.js';
import { throwNo, receiver } from '../../../../../test/support/inbox/receiver-harness.js';
import type { VerifiedEvent } from './verified-event.js';

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

  it('a handler whose attempt ends before the receipt is read starts only once', async () => {
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

  it('an event that is stored after its deadline leaves no open watch', async () => {
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

  it('WH-22 a copy runs the failed handler again, and no other', async () => {
    const { worker, receive } = receiver();
    worker.handle = throwNo;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    worker.handle = () => {};
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(worker.ran).toEqual(['a', 'a']);
  });

  it('WH-22 a copy does not run a handler again that failed while the copy was looked up', async () => {
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

  it('a copy is rejected with 503 if the memory inbox deletes its dead event before the lookup', async () => {
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

  it('the deadline counts from the arrival of the webhook request, also if its body arrived slowly', async () => {
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
