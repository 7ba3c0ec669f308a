import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { OpenCalls } from './open-calls.js';

const MIB = 1024 ** 2;

let outcomes: string[];
beforeEach(() => {
  jest.useFakeTimers();
  outcomes = [];
});
afterEach(() => {
  jest.useRealTimers();
});

/** A list of calls, and a function that adds a receive and notes how it ends. */
function openCalls(timeoutMs: number) {
  const calls = new OpenCalls(timeoutMs, () => outcomes.push('idle'));
  const add = (number: number, bytes = 0) =>
    void calls.add({ number, name: 'receive', args: [[{ raw: { byteLength: bytes } }]] }).then(
      (value) => outcomes.push(`${number} ${String(value)}`),
      ({ message }: Error) =>
        outcomes.push(`${number} ${message.includes('did not respond') ? 'late' : message}`),
    );
  return { calls, add };
}

describe('OpenCalls', () => {
  it('OpenCalls returns each call once, and reports when no call is left', async () => {
    const { calls, add } = openCalls(60_000);
    add(1);
    add(2);
    calls.take(2)!.resolve('two' as never);
    expect(calls.take(2)).toBeUndefined();
    expect(calls.isIdle).toBe(false);
    calls.take(1)!.resolve('one' as never);
    expect(calls.isIdle).toBe(true);
    await jest.advanceTimersByTimeAsync(0);
    expect(outcomes).toEqual(['idle', '2 two', '1 one']);
  });

  it('OpenCalls times each call out at its own time, with one timer', async () => {
    const { calls, add } = openCalls(30);
    add(1);
    add(2);
    calls.take(1);
    await jest.advanceTimersByTimeAsync(20);
    add(3);
    await jest.advanceTimersByTimeAsync(9);
    expect(outcomes).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    expect(outcomes).toEqual(['2 late']);
    await jest.advanceTimersByTimeAsync(19);
    expect(outcomes).toEqual(['2 late']);
    await jest.advanceTimersByTimeAsync(1);
    expect(outcomes).toEqual(['2 late', 'idle', '3 late']);
    add(4);
    await jest.advanceTimersByTimeAsync(30);
    expect(outcomes.slice(3)).toEqual(['idle', '4 late']);
    expect(calls.isIdle).toBe(true);
  });

  it('OpenCalls leaves no timer running when no call is pending', () => {
    const { calls, add } = openCalls(30);
    add(1);
    calls.take(1);
    jest.advanceTimersByTime(30);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('OpenCalls rejects all calls with the error of a thread that has ended', async () => {
    const { calls, add } = openCalls(60_000);
    add(1);
    add(2);
    calls.rejectAll(new Error('gone'));
    await jest.advanceTimersByTimeAsync(0);
    expect(outcomes).toEqual(['idle', '1 gone', '2 gone']);
  });

  it('OpenCalls rejects calls above 256 MiB of bodies: a receive with inbox_full, others with inbox_unavailable', () => {
    const { calls, add } = openCalls(60_000);
    for (let number = 1; number <= 256; number += 1) {
      calls.checkLimits('receive');
      add(number, MIB);
    }
    const code = (one: string) => expect.objectContaining({ code: one });
    expect(() => calls.checkLimits('receive')).toThrow(code('inbox_full'));
    expect(() => calls.checkLimits('complete')).toThrow(code('inbox_unavailable'));
  });

  it('OpenCalls counts a call that timed out until the thread responds or has ended', async () => {
    const { calls, add } = openCalls(30);
    add(1, 100 * MIB);
    add(2, 156 * MIB);
    await jest.advanceTimersByTimeAsync(30);
    expect(outcomes).toEqual(['idle', '1 late', '2 late']);
    calls.take(3);
    expect(() => calls.checkLimits('receive')).toThrow('accepts no more');
    calls.take(2);
    calls.take(2);
    calls.checkLimits('receive');
    add(4, 156 * MIB);
    expect(() => calls.checkLimits('receive')).toThrow('accepts no more');
    calls.rejectAll(new Error('gone'));
    calls.checkLimits('receive');
  });
});
