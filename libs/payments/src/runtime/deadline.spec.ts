import { getEventListeners } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { abortable, abortableDelay, Deadline, withTimeLimit } from './deadline.js';

describe('Deadline', () => {
  it('Deadline ends with the reason "timeout" when its time is over', () => {
    const runtime = new FakeRuntime();
    const deadline = new Deadline(runtime, 100);
    runtime.advance(40);
    expect([deadline.ended, deadline.signal.aborted]).toEqual([undefined, false]);
    expect(deadline.remainingMs).toBe(60);
    runtime.advance(60);
    expect([deadline.ended, deadline.signal.aborted]).toEqual(['timeout', true]);
    expect(runtime.pending).toBe(0);
  });

  it('Deadline ends with the reason "aborted" if its parent signal was aborted before or is aborted later', () => {
    const runtime = new FakeRuntime();
    const parent = new AbortController();
    const deadline = new Deadline(runtime, 100, parent.signal);
    parent.abort();
    expect([deadline.ended, deadline.signal.aborted]).toEqual(['aborted', true]);
    expect(new Deadline(runtime, 100, parent.signal).ended).toBe('aborted');
    expect(runtime.pending).toBe(0);
  });

  it('Deadline keeps the first reason if it ends twice', () => {
    const deadline = new Deadline(new FakeRuntime(), 100);
    deadline.end('closed');
    deadline.end('timeout');
    expect(deadline.ended).toBe('closed');
  });

  it('Deadline leaves neither a timer nor a listener after release()', () => {
    const runtime = new FakeRuntime();
    const { signal } = new AbortController();
    const deadline = new Deadline(runtime, 100, signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    deadline.release();
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
    expect(runtime.pending).toBe(0);
    runtime.advance(100);
    expect(deadline.ended).toBeUndefined();
  });
});

describe('withTimeLimit', () => {
  const late = () => new Error('late');

  it('withTimeLimit() resolves or rejects as the work does, and cancels its timer', async () => {
    const runtime = new FakeRuntime();
    await expect(withTimeLimit(Promise.resolve(7), 10, runtime, late)).resolves.toBe(7);
    const failure = Promise.reject(new Error('failed'));
    await expect(withTimeLimit(failure, 10, runtime, late)).rejects.toThrow('failed');
    expect(runtime.pending).toBe(0);
  });

  it.each([10, -1])(
    'withTimeLimit() rejects after %p ms, and ignores a later rejection of the work',
    async (ms) => {
      const runtime = new FakeRuntime();
      const { promise, reject } = Promise.withResolvers<never>();
      const limited = withTimeLimit(promise, ms, runtime, late);
      runtime.advance(10);
      reject(new Error('failed'));
      await expect(limited).rejects.toThrow('late');
    },
  );
});

const never = new Promise<never>(() => {});

describe('abortable', () => {
  const aborted = (): Error => new Error('given up');

  it('abortable() resolves or rejects as its promise does', async () => {
    const { signal } = new AbortController();
    await expect(abortable(Promise.resolve(7), signal, aborted)).resolves.toBe(7);
    await expect(abortable(Promise.reject(new Error('failed')), signal, aborted)).rejects.toThrow(
      'failed',
    );
    await expect(abortable(Promise.resolve(7), undefined, aborted)).resolves.toBe(7);
  });

  it('abortable() rejects with the given error if its signal is aborted before or during the wait', async () => {
    const controller = new AbortController();
    const waiting = abortable(never, controller.signal, aborted);
    controller.abort();
    await expect(waiting).rejects.toThrow('given up');
    await expect(abortable(never, controller.signal, aborted)).rejects.toThrow('given up');
  });
});

describe('abortableDelay', () => {
  it('abortableDelay() resolves when its time is over', async () => {
    const runtime = new FakeRuntime();
    const delay = abortableDelay(100, runtime, new AbortController().signal);
    runtime.advance(100);
    await expect(delay).resolves.toBeUndefined();
  });

  it('abortableDelay() resolves when its signal is aborted, and cancels its timer', async () => {
    const runtime = new FakeRuntime();
    const controller = new AbortController();
    const delay = abortableDelay(100, runtime, controller.signal);
    expect(runtime.pending).toBe(1);
    controller.abort();
    await delay;
    await abortableDelay(100, runtime, controller.signal);
    expect(runtime.pending).toBe(0);
  });
});
