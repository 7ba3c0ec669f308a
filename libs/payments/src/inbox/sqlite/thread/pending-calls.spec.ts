import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { PendingCalls } from './pending-calls.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function pendingCalls(patienceMs: number) {
  const outcomes: string[] = [];
  const calls = new PendingCalls(
    patienceMs,
    ({ reject }) => reject(new Error('late')),
    () => outcomes.push('idle'),
  );
  const add = (number: number) =>
    calls.add(number, {
      resolve: (value) => outcomes.push(`${number} ${String(value)}`),
      reject: ({ message }) => outcomes.push(`${number} ${message}`),
    });
  return { calls, add, outcomes };
}

describe('pending calls', () => {
  it('are answered once', () => {
    const { calls, add, outcomes } = pendingCalls(60_000);
    add(1);
    add(2);
    calls.take(2)!.resolve('two' as never);
    expect(calls.take(2)).toBeUndefined();
    calls.take(1)!.resolve('one' as never);
    expect(outcomes).toEqual(['2 two', 'idle', '1 one']);
    expect(calls.size).toBe(0);
  });

  it('time out, each at its own time', () => {
    const { calls, add, outcomes } = pendingCalls(30);
    add(1);
    add(2);
    calls.take(1);
    jest.advanceTimersByTime(20);
    add(3);
    jest.advanceTimersByTime(9);
    expect(outcomes).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(outcomes).toEqual(['2 late']);
    jest.advanceTimersByTime(19);
    expect(outcomes).toEqual(['2 late']);
    jest.advanceTimersByTime(1);
    expect(outcomes).toEqual(['2 late', 'idle', '3 late']);
    add(4);
    jest.advanceTimersByTime(30);
    expect(outcomes.slice(3)).toEqual(['idle', '4 late']);
  });

  it('leave no timer running without end', () => {
    const { calls, add } = pendingCalls(30);
    add(1);
    calls.take(1);
    jest.advanceTimersByTime(30);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('are all rejected if the thread has died', () => {
    const { calls, add, outcomes } = pendingCalls(60_000);
    add(1);
    add(2);
    calls.rejectAll(new Error('gone'));
    expect(outcomes).toEqual(['1 gone', 'idle', '2 gone']);
  });
});
