import { Logger } from '@nestjs/common';
import { describe, expect, it } from '@jest/globals';
import { turns as eventLoopTurns, until } from '../../../../../test/support/time/waiting.js';
import { NO, receiver } from '../../../../../test/support/inbox/receiver-bench.js';
import type { VerifiedEvent } from './verified-event.js';

Logger.overrideLogger(false);

const turns = () => eventLoopTurns(10);

describe('EventReceiver', () => {
  it('rejects, and does not throw, if it is given no delivery', async () => {
    const { made } = receiver();
    const nothing = undefined as unknown as VerifiedEvent;
    await expect(made.receive(nothing)).rejects.toThrow(TypeError);
  });

  it('starts a handler that fails at once only once for one delivery', async () => {
    const { worker, receive, settlements } = receiver();
    worker.handle = NO;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(worker.ran).toEqual(['a']);
    expect(settlements.open).toBe(0);
  });

  it('starts it once even if its attempt ends before the receipt is read', async () => {
    const { store, worker, receive } = receiver();
    worker.handle = NO;
    worker.places = false;
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

  it('WH-26 stops waiting for a handler when its sender is answered at the deadline', async () => {
    const { runtime, worker, settlements, receive, find } = receiver({ deadlineMs: 1000 });
    let end = () => {};
    worker.handle = () => new Promise<void>((resolve) => (end = resolve));
    for (let copy = 0; copy < 3; copy += 1) {
      const answer = receive('a');
      answer.catch(() => {});
      await turns();
      expect(settlements.open).toBe(1);
      runtime.advance(1000);
      await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
      await turns();
      // The handler still runs, and keeps no body of a copy.
      expect(settlements.open).toBe(0);
    }
    end();
    await turns();
    expect((await find('a')).deliveries[0]!.state).toBe('done');
    expect(worker.ran).toEqual(['a']);
  });

  it('waits for no handler of an event that was stored only after its sender was answered', async () => {
    const { runtime, store, worker, settlements, receive } = receiver({ deadlineMs: 1000 });
    worker.handle = () => new Promise<void>(() => {});
    const storeReceive = store.receive.bind(store);
    const stored = Promise.withResolvers<void>();
    store.receive = async (events) => {
      await stored.promise;
      return storeReceive(events);
    };
    const answer = receive('a');
    answer.catch(() => {});
    runtime.advance(1000);
    await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
    expect(settlements.open).toBe(1);
    stored.resolve();
    await until(() => worker.ran.length > 0);
    await turns();
    expect(settlements.open).toBe(0);
  });

  it('WH-23 waits for the handlers of the first event if a copy has another id', async () => {
    const { worker, settlements, receive } = receiver({ oncePerTransaction: ['t'] });
    let end = () => {};
    worker.handle = () => new Promise<void>((resolve) => (end = resolve));
    const original = receive('a', { transactionId: 't-1' });
    await turns();
    let answered = false;
    const copy = receive('b', { transactionId: 't-1' }).then((receipt) => {
      answered = true;
      return receipt;
    });
    await turns();
    expect(answered).toBe(false);
    end();
    expect(await copy).toEqual({ status: 'duplicate', id: 'a' });
    expect(await original).toEqual({ status: 'handled', id: 'a' });
    expect(settlements.open).toBe(0);
  });

  it('WH-22 runs the handler that failed again for a copy, and no other', async () => {
    const { worker, receive } = receiver();
    worker.handle = NO;
    await expect(receive('a')).rejects.toMatchObject({ code: 'handlers_failed' });
    worker.handle = () => {};
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(await receive('a')).toEqual({ status: 'duplicate', id: 'a' });
    expect(worker.ran).toEqual(['a', 'a']);
  });

  it('WH-22 starts nothing again that failed while the copy was looked up', async () => {
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
    const answers = await Promise.allSettled([receive('a'), receive('a')]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ reason: { code: 'handlers_failed' } });
    }
    await turns();
    expect(worker.ran).toEqual(['a']);
  });

  it('asks for a copy again if the memory inbox deletes its dead event before the copy is looked up', async () => {
    const { store, worker, receive } = receiver();
    const fail = store.fail.bind(store);
    store.fail = (lease, { error }) => fail(lease, { error, retryInMs: null });
    worker.handle = NO;
    await expect(receive('dead')).rejects.toMatchObject({ code: 'handlers_failed' });
    worker.handle = () => {};
    for (let n = 1; n < 1000; n += 1) await receive(`done-${n}`);
    // The inbox holds 1000 events. The new one makes it delete the oldest.
    const [copy] = await Promise.allSettled([receive('dead'), receive('new')]);
    expect(copy).toMatchObject({ reason: { code: 'inbox_unavailable', status: 503 } });
    expect(await receive('dead')).toEqual({ status: 'handled', id: 'dead' });
    expect(worker.ran.filter((id) => id === 'dead')).toHaveLength(2);
  });

  it('counts the deadline from the arrival, also for a body that arrived slowly', async () => {
    const { runtime, worker, receive } = receiver({ deadlineMs: 1000 });
    worker.handle = () => new Promise<void>(() => {});
    const answer = receive('a', {}, { lateMs: 400 });
    answer.catch(() => {});
    await turns();
    let answered = false;
    answer.catch(() => (answered = true));
    runtime.advance(599);
    await turns();
    expect(answered).toBe(false);
    runtime.advance(1);
    await expect(answer).rejects.toMatchObject({ code: 'deadline_passed' });
  });

  it('leaves no timer behind once it has answered', async () => {
    const { runtime, worker, receive } = receiver();
    await receive('a');
    worker.handle = NO;
    await expect(receive('b')).rejects.toMatchObject({ code: 'handlers_failed' });
    await turns();
    expect(runtime.pending).toBe(0);
  });

  it('refuses a delivery to memory while nothing runs', async () => {
    const { worker, receive, store } = receiver();
    worker.working = false;
    await expect(receive('a')).rejects.toMatchObject({ code: 'inbox_unavailable', status: 503 });
    expect(await store.find('c', 'a')).toBeUndefined();
  });
});
