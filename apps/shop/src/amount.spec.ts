import { describe, expect, it } from '@jest/globals';
import { cents, isAmount } from './amount.js';

describe('isAmount', () => {
  it.each([0.01, 0.1, 0.29, 1.15, 4.35, 19.99, 1, 1500, 999_999_999_999.99, 1_000_000_000_000])(
    'takes %d',
    (amount) => expect(isAmount(amount)).toBe(true),
  );

  it.each([0, -0, -1, 0.001, 1e-7, 1.005, 1e13, Infinity, NaN, '1', null, undefined, 1n, {}])(
    'refuses %p',
    (amount) => expect(isAmount(amount)).toBe(false),
  );
});

describe('cents', () => {
  it('makes sums and comparisons exact', () => {
    expect(cents(0.1) + cents(0.2)).toBe(cents(0.3));
  });
});
