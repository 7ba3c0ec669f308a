import { describe, expect, it } from '@jest/globals';
import { formatAmount, isAmount, toCents } from './amount.js';

describe('isAmount', () => {
  it.each([0.01, 0.1, 0.29, 1.15, 4.35, 19.99, 1, 1500, 999_999_999_999.99, 1_000_000_000_000])(
    'isAmount() accepts %d',
    (amount) => expect(isAmount(amount)).toBe(true),
  );

  it.each([0, -0, -1, 0.001, 1e-7, 1.005, 1e13, Infinity, NaN, '1', null, undefined, 1n, {}])(
    'isAmount() rejects %p',
    (amount) => expect(isAmount(amount)).toBe(false),
  );
});

describe('formatAmount', () => {
  it.each([
    [350, 'KES\u00a0350.00'],
    [420.5, 'KES\u00a0420.50'],
    [1_234_567.89, 'KES\u00a01,234,567.89'],
  ])('formatAmount() formats %d as %s', (amount, text) => expect(formatAmount(amount)).toBe(text));
});

describe('toCents', () => {
  it('toCents() makes sums of amounts exact', () => {
    expect(toCents(0.1) + toCents(0.2)).toBe(toCents(0.3));
  });
});
