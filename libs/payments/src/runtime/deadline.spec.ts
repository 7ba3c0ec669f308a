import { getEventListeners } from 'node:events';
import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/time/fake-runtime.js';
import { Deadline } from './deadline.js';

describe('Deadline', () => {
  it('ends with "timeout" when its time is over', () => {
    const runtime = new FakeRuntime();
    const deadline = new Deadline(runtime, 100);
    runtime.advance(40);
    expect([deadline.ended, deadline.signal.aborted]).toEqual([undefined, false]);
    expect(deadline.remainingMs).toBe(60);
    runtime.advance(60);
    expect([deadline.ended, deadline.signal.aborted]).toEqual(['timeout', true]);
    expect(runtime.pending).toBe(0);
  });

  it('ends with "aborted" if its parent is aborted, before or after it is created', () => {
    const runtime = new FakeRuntime();
    const parent = new AbortController();
    const deadline = new Deadline(runtime, 100, parent.signal);
    parent.abort();
    expect([deadline.ended, deadline.signal.aborted]).toEqual(['aborted', true]);
    expect(new Deadline(runtime, 100, parent.signal).ended).toBe('aborted');
    expect(runtime.pending).toBe(0);
  });

  it('keeps the first reason', () => {
    const deadline = new Deadline(new FakeRuntime(), 100);
    deadline.end('closed');
    deadline.end('timeout');
    expect(deadline.ended).toBe('closed');
  });

  it('leaves neither a timer nor a listener after release()', () => {
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
