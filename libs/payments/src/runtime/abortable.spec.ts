import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { abortable, abortableDelay } from './abortable.js';

const never = new Promise<never>(() => {});

describe('abortable', () => {
  it('settles as its promise does', async () => {
    const { signal } = new AbortController();
    await expect(abortable(Promise.resolve(7), signal)).resolves.toBe(7);
    await expect(abortable(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
    await expect(abortable(Promise.resolve(7), undefined)).resolves.toBe(7);
  });

  it('rejects with "aborted" if its signal is aborted, before or during the wait', async () => {
    const controller = new AbortController();
    const waiting = abortable(never, controller.signal);
    controller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'aborted' });
    await expect(abortable(never, controller.signal)).rejects.toMatchObject({ code: 'aborted' });
  });
});

describe('abortableDelay', () => {
  it('resolves when its time is over', async () => {
    const runtime = new FakeRuntime();
    const delay = abortableDelay(100, runtime, new AbortController().signal);
    runtime.advance(100);
    await expect(delay).resolves.toBeUndefined();
  });

  it('resolves when its signal is aborted, and leaves no timer', async () => {
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
