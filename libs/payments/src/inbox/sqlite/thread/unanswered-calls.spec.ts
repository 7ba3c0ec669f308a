import { describe, expect, it } from '@jest/globals';
import { UnansweredCalls } from './unanswered-calls.js';

const MIB = 1024 ** 2;
const receive = (number: number, bytes: number) => ({
  number,
  name: 'receive' as const,
  request: { events: [{ raw: { byteLength: bytes } }] },
});

describe('UnansweredCalls', () => {
  it('bounds the bodies, and rejects a receive as one of which nothing was stored', () => {
    const calls = new UnansweredCalls();
    for (let number = 1; number <= 256; number += 1) {
      expect(calls.refusal('receive')).toBeNull();
      calls.add(receive(number, MIB));
    }
    expect(calls.refusal('receive')).toMatchObject({ code: 'inbox_full' });
    expect(calls.refusal('complete')).toMatchObject({ code: 'inbox_unavailable' });
  });

  it('has room again when the thread answers, or has ended', () => {
    const calls = new UnansweredCalls();
    calls.add(receive(1, 100 * MIB));
    calls.add(receive(2, 156 * MIB));
    calls.remove(3);
    expect(calls.refusal('receive')).not.toBeNull();
    calls.remove(2);
    calls.remove(2);
    expect(calls.refusal('receive')).toBeNull();
    calls.add(receive(4, 156 * MIB));
    expect(calls.refusal('receive')).not.toBeNull();
    calls.clear();
    expect(calls.refusal('receive')).toBeNull();
  });
});
