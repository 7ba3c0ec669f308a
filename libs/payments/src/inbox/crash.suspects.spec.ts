import { describe, expect, it } from '@jest/globals';
import { apart } from './crash.suspects.js';
import type { ClaimedDelivery } from './store.contract.js';

const claimed = (id: string, facts: Partial<ClaimedDelivery> = {}): ClaimedDelivery => ({
  company: 'c',
  id,
  handler: 'h',
  token: 1,
  attempt: 2,
  receivedAt: new Date(0),
  ageMs: 0,
  raw: Buffer.alloc(0),
  newerHandled: false,
  takenOver: true,
  ...facts,
});
const ids = (deliveries: readonly ClaimedDelivery[]) => deliveries.map(({ id }) => id);

describe('apart', () => {
  it('begins everything at once where no process died', () => {
    const deliveries = ['a', 'b', 'c'].map((id) => claimed(id, { takenOver: false }));
    expect(apart(deliveries, { maxAttempts: 15 })).toEqual({ now: deliveries, later: [] });
  });

  it('begins one of those whose process died, and the others one by one', () => {
    const suspects = ['a', 'b', 'c'].map((id) => claimed(id));
    const { now, later } = apart([...suspects, claimed('d', { takenOver: false })], {
      maxAttempts: 15,
    });
    expect(ids(now)).toEqual(['a', 'd']);
    expect(later.map(({ delivery, inMs }) => [delivery.id, inMs])).toEqual([
      ['b', 250],
      ['c', 500],
    ]);
  });

  it('keeps nobody waiting for more than 5 seconds, however many they are', () => {
    const suspects = Array.from({ length: 1000 }, (_, index) => claimed(`e-${index}`));
    const { later } = apart(suspects, { maxAttempts: 15 });
    expect(later).toHaveLength(999);
    expect(later.at(-1)!.inMs).toBeLessThanOrEqual(5000);
  });

  it('lets one that is out of attempts through, to be put to the dead letters', () => {
    const { now, later } = apart([claimed('a', { attempt: 4 }), claimed('b')], { maxAttempts: 3 });
    expect(ids(now)).toEqual(['a', 'b']);
    expect(later).toEqual([]);
  });
});
