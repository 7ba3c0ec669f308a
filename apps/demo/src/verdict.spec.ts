import { describe, expect, it } from '@jest/globals';
import { isExact, judge, toTable } from './verdict.js';

const paid = { transactionId: 't-1', externalReference: 'tea', amount: 10.1 };
const booked = { transactionId: 't-1', reference: 'tea', amount: 10.1, bookedAt: 'now' };

describe('judge', () => {
  it.each([
    ['ok', [booked]],
    ['ok, matches no order', [{ ...booked, unmatched: true }]],
    ['LOST', []],
    ['BOOKED 2 TIMES', [booked, booked]],
    ['WRONG AMOUNT', [{ ...booked, amount: 10 }]],
    ['WRONG REFERENCE', [{ ...booked, reference: 'milk' }]],
  ])('says %s', (verdict, ledger) => {
    const rows = judge([paid], ledger);
    expect(rows).toMatchObject([{ verdict }]);
    expect(isExact(rows)).toBe(verdict.startsWith('ok'));
  });

  it('finds what was booked and never paid', () => {
    const rows = judge([paid], [booked, { ...booked, transactionId: 't-2', reference: null }]);
    expect(rows.map(({ verdict }) => verdict)).toEqual(['ok', 'NEVER PAID']);
    expect(isExact(rows)).toBe(false);
  });

  it('is right about a day without payments', () => {
    expect(isExact(judge([], []))).toBe(true);
  });
});

describe('toTable', () => {
  it('adds up in whole cents', () => {
    const three = ['a', 'b', 'c'].map((id) => ({ ...paid, transactionId: id, amount: 0.1 }));
    expect(toTable(judge(three, [])).at(-1)).toMatch(
      /total +3 payments +0\.30 +0\.00 +THE LEDGER IS WRONG$/,
    );
  });
});
