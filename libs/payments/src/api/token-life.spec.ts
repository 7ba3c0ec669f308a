import { describe, expect, it } from '@jest/globals';
import { parseLifetimeMs, remainingMs, tokenLife } from './access-token.js';

describe('parseLifetimeMs', () => {
  it.each([
    ['3599', 3_599_000],
    [3599, 3_599_000],
    ['20', 20_000],
    ['1', 1_000],
    [99_999_999, 86_400_000],
    ['999999999999999', 86_400_000],
  ])('parseLifetimeMs() reads %p as %p ms', (given, ms) => {
    expect(parseLifetimeMs(given)).toBe(ms);
  });

  it.each([
    '3599abc',
    '',
    ' 3599',
    '+3599',
    '-1',
    '1e3',
    '0x10',
    '3,599',
    '3599.0',
    '٣',
    '0',
    '1e308',
    -1,
    0,
    1.5,
    1e308,
    NaN,
    Infinity,
    null,
    undefined,
    true,
    {},
    [[3599]],
    10n,
    '9'.repeat(400),
  ])('parseLifetimeMs() returns undefined for %p', (given) => {
    expect(parseLifetimeMs(given)).toBeUndefined();
  });
});

describe('tokenLife', () => {
  it.each([
    [3_599_000, 90_000, 120_000, 30_000],
    [600_000, 45_000, 60_000, 30_000],
    [20_000, 1_500, 2_000, 1_000],
  ])(
    'tokenLife() of %i ms has softMs from %i to %i and hardMs %i',
    (lifetime, least, most, hard) => {
      const sent = { wall: 0, monotonic: 0 };
      expect(tokenLife(sent, lifetime, 0)).toMatchObject({ softMs: least, hardMs: hard });
      expect(tokenLife(sent, lifetime, 1).softMs).toBe(most);
    },
  );
});

describe('remainingMs', () => {
  it('remainingMs() returns the smaller value of the wall clock and the monotonic clock', () => {
    const life = tokenLife({ wall: 1_000_000, monotonic: 50 }, 10_000, 0);
    expect(remainingMs(life, { wall: 1_004_000, monotonic: 50 })).toBe(6_000);
    expect(remainingMs(life, { wall: 0, monotonic: 8_050 })).toBe(2_000);
    expect(remainingMs(life, { wall: 2_000_000, monotonic: 51 })).toBeLessThan(0);
  });
});
