import { describe, expect, it } from '@jest/globals';
import { checkLedger, formatTable, isCorrect } from './ledger-check.js';

const paid = { transactionId: 't-1', externalReference: 'tea', amount: 10.1 };
const entry = { transactionId: 't-1', reference: 'tea', amount: 10.1, recordedAt: 'now' };

describe('checkLedger', () => {
  it.each([
    ['ok', [entry]],
    ['ok, matches no order', [{ ...entry, unmatched: true }]],
    ['LOST', []],
    ['RECORDED 2 TIMES', [entry, entry]],
    ['WRONG AMOUNT', [{ ...entry, amount: 10 }]],
    ['WRONG REFERENCE', [{ ...entry, reference: 'milk' }]],
  ])('checkLedger() returns %j for a payment with the entries %j', (result, ledger) => {
    const rows = checkLedger([paid], ledger);
    expect(rows).toMatchObject([{ result }]);
    expect(isCorrect(rows)).toBe(result.startsWith('ok'));
  });

  it('checkLedger() returns NEVER PAID for an entry without a payment', () => {
    const rows = checkLedger([paid], [entry, { ...entry, transactionId: 't-2', reference: null }]);
    expect(rows.map(({ result }) => result)).toEqual(['ok', 'NEVER PAID']);
    expect(isCorrect(rows)).toBe(false);
  });

  it('checkLedger() accepts an empty ledger if there was no payment', () => {
    expect(isCorrect(checkLedger([], []))).toBe(true);
  });
});

describe('formatTable', () => {
  it('formatTable() adds amounts in whole cents', () => {
    const three = ['a', 'b', 'c'].map((id) => ({ ...paid, transactionId: id, amount: 0.1 }));
    expect(formatTable(checkLedger(three, [])).at(-1)).toMatch(
      /total +3 payments +0\.30 +0\.00 +THE LEDGER IS WRONG$/,
    );
  });
});
