import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CallLimit, PendingCalls } from './pending-calls.js';

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  jest.useRealTimers();
});

function pendingCalls(timeoutMs: number) {
  const outcomes: string[] = [];
  const calls = new PendingCalls(
    timeoutMs,
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

describe('PendingCalls', () => {
  it('PendingCalls returns each call once, and reports when no call is left', () => {
    const { calls, add, outcomes } = pendingCalls(60_000);
    add(1);
    add(2);
    calls.take(2)!.resolve('two' as never);
    expect(calls.take(2)).toBeUndefined();
    calls.take(1)!.resolve('one' as never);
    expect(outcomes).toEqual(['2 two', 'idle', '1 one']);
    expect(calls.size).toBe(0);
  });

  it('PendingCalls times each call out at its own time, with one timer', () => {
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

  it('PendingCalls leaves no timer running when no call is pending', () => {
    const { calls, add } = pendingCalls(30);
    add(1);
    calls.take(1);
    jest.advanceTimersByTime(30);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('PendingCalls rejects all calls with the error of a thread that has ended', () => {
    const { calls, add, outcomes } = pendingCalls(60_000);
    add(1);
    add(2);
    calls.rejectAll(new Error('gone'));
    expect(outcomes).toEqual(['1 gone', 'idle', '2 gone']);
  });
});

const MIB = 1024 ** 2;
const receive = (number: number, bytes: number) => ({
  number,
  name: 'receive' as const,
  args: [[{ raw: { byteLength: bytes } }]],
});

describe('CallLimit', () => {
  it('CallLimit rejects calls above 256 MiB of bodies: a receive with inbox_full, others with inbox_unavailable', () => {
    const limit = new CallLimit();
    for (let number = 1; number <= 256; number += 1) {
      expect(limit.rejection('receive')).toBeNull();
      limit.add(receive(number, MIB));
    }
    expect(limit.rejection('receive')).toMatchObject({ code: 'inbox_full' });
    expect(limit.rejection('complete')).toMatchObject({ code: 'inbox_unavailable' });
  });

  it('CallLimit accepts calls again when the thread responds or has ended', () => {
    const limit = new CallLimit();
    limit.add(receive(1, 100 * MIB));
    limit.add(receive(2, 156 * MIB));
    limit.remove(3);
    expect(limit.rejection('receive')).not.toBeNull();
    limit.remove(2);
    limit.remove(2);
    expect(limit.rejection('receive')).toBeNull();
    limit.add(receive(4, 156 * MIB));
    expect(limit.rejection('receive')).not.toBeNull();
    limit.clear();
    expect(limit.rejection('receive')).toBeNull();
  });
});
