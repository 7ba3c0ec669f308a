import { describe, expect, it } from '@jest/globals';
import { holds, tally } from './tally.js';
import type { Sightings } from './tally.js';

const booked = (transactionId: string, at: number) => ({
  transactionId,
  reference: null,
  amount: 1,
  bookedAt: new Date(at).toISOString(),
});

const GOOD: Sightings = {
  paid: ['a', 'b', 'c'],
  acknowledged: new Map([
    ['a', 100],
    ['b', 900],
    ['c', 2500],
  ]),
  ledger: [booked('a', 150), booked('b', 3200), booked('c', 2600)],
  kills: [1000, 2000],
  inbox: { done: 3, dead: 1 },
  falls: [],
};

describe('tally', () => {
  it('counts a run in which everything held', () => {
    const result = tally(GOOD);
    expect(result).toEqual({
      paid: 3,
      acknowledged: 3,
      lost: 0,
      doubled: 0,
      invented: 0,
      dead: 1,
      unsettled: 0,
      kills: 2,
      falls: 0,
      recovery: { median: 1600, max: 1600 },
      caughtUp: 2200,
    });
    expect(holds(result)).toBe(true);
  });

  it.each([
    ['lost', { ledger: GOOD.ledger.slice(1) }],
    ['doubled', { ledger: [...GOOD.ledger, booked('a', 200)] }],
    ['invented', { ledger: [...GOOD.ledger, booked('d', 200)] }],
    ['unsettled', { inbox: { done: 2, running: 1 } }],
    ['falls', { falls: ['exit code 1'] }],
  ] as const)('does not hold where there is one %s', (name, changes) => {
    const result = tally({ ...GOOD, ...changes });
    expect(result[name]).toBe(1);
    expect(holds(result)).toBe(false);
  });

  it('does not take what nobody acknowledged for lost, and does not hold where nothing was', () => {
    const result = tally({ ...GOOD, acknowledged: new Map(), ledger: [] });
    expect(result).toMatchObject({ lost: 0, recovery: null, caughtUp: 0 });
    expect(holds(result)).toBe(false);
  });
});
