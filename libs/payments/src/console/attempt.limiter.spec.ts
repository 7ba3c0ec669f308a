import { describe, expect, it } from '@jest/globals';
import { FakeRuntime } from '../../../../test/support/fake.runtime.js';
import { AttemptLimiter } from './attempt.limiter.js';

function fail(limiter: AttemptLimiter, client: string, times: number): void {
  for (let i = 0; i < times; i += 1) {
    expect(limiter.begin(client)).toBe(0);
    limiter.end(client, false);
  }
}

describe('AttemptLimiter', () => {
  it('holds back a client after ten wrong passwords, for what is left of the minute', () => {
    const runtime = new FakeRuntime();
    const limiter = new AttemptLimiter(runtime);
    fail(limiter, 'a', 4);
    runtime.advance(20_000);
    fail(limiter, 'a', 6);
    expect(limiter.begin('a')).toBe(40_000);
    expect(limiter.begin('b')).toBe(0);
    runtime.advance(39_999);
    expect(limiter.begin('a')).toBe(1);
    runtime.advance(1);
    fail(limiter, 'a', 10);
    expect(limiter.begin('a')).toBe(60_000);
  });

  it('counts no right password, however many there are', () => {
    const limiter = new AttemptLimiter(new FakeRuntime());
    fail(limiter, 'a', 9);
    for (let i = 0; i < 100; i += 1) {
      expect(limiter.begin('a')).toBe(0);
      limiter.end('a', true);
    }
    fail(limiter, 'a', 1);
    expect(limiter.begin('a')).toBeGreaterThan(0);
  });

  it('lets no more than fifty attempts of a client wait for their answer', () => {
    const limiter = new AttemptLimiter(new FakeRuntime());
    for (let i = 0; i < 50; i += 1) expect(limiter.begin('a')).toBe(0);
    expect(limiter.begin('a')).toBe(1000);
    expect(limiter.begin('b')).toBe(0);
    limiter.end('a', true);
    expect(limiter.begin('a')).toBe(0);
  });

  it('remembers a thousand clients, and forgets the first of more', () => {
    const limiter = new AttemptLimiter(new FakeRuntime());
    for (let i = 0; i < 1000; i += 1) fail(limiter, `client ${i}`, 10);
    expect(limiter.begin('client 0')).toBeGreaterThan(0);
    fail(limiter, 'one more', 1);
    expect(limiter.begin('client 1')).toBeGreaterThan(0);
    expect(limiter.begin('client 0')).toBe(0);
  });
});
