import { beforeEach, describe, expect, it } from '@jest/globals';
import { incoming } from '../../../../../test/store-contract/contract-fixtures.js';
import { expected, fulfilling } from '../../../../../test/store-contract/expectation-cases.js';
import { startMemoryStore } from '../../../../../test/support/inbox/memory-harness.js';
import type { MemoryHarness } from '../../../../../test/support/inbox/memory-harness.js';

let store: MemoryHarness['store'];

beforeEach(async () => {
  ({ store } = await startMemoryStore({ maxEvents: 4, maxBytes: 10_000 }));
});

const expectFour = async (): Promise<void> => {
  for (const reference of ['a', 'b', 'c', 'd']) {
    await store.expectations.expect(expected({ reference, transactionId: 'tx' }));
  }
};

describe('memoryExpectations', () => {
  it('EX-01 expect throws a TypeError if it gets a transaction', async () => {
    const { expectations } = store;
    await expect(expectations.expect(expected({ reference: 'a' }), {})).rejects.toThrow(TypeError);
    expect(await expectations.find('acme', 'a')).toBe(undefined);
  });

  it('EX-01 expect rejects with inbox_full if maxEvents expectations are open, and events are still stored', async () => {
    await expectFour();
    const { expectations } = store;
    const full = { code: 'inbox_full', message: expect.stringContaining('expectations') };
    await expect(expectations.expect(expected({ reference: 'e' }))).rejects.toMatchObject(full);
    expect(await expectations.find('acme', 'e')).toBe(undefined);
    expect(await expectations.expect(expected({ reference: 'a' }))).toBe(false);
    const events = [incoming(), incoming(), incoming(), fulfilling({ orderingKey: 'tx' })];
    const receipts = await store.receive(events);
    expect(receipts.map(({ outcome }) => outcome)).toEqual(events.map(() => 'stored'));
    expect((await expectations.find('acme', 'd'))?.state).toBe('fulfilled');
  });

  it('a new expectation replaces the oldest one that ended, and then the oldest overdue one', async () => {
    await expectFour();
    const { expectations } = store;
    await expectations.cancel('acme', 'c');
    const lease = { limit: 1, leaseMs: 1000 };
    const [poll] = await expectations.claimPolls(lease);
    const outcome = { result: 'unknown', detail: null, next: 'overdue' } as const;
    const settlement = { lease: poll!, outcome, event: null, eventTypes: [], keepLost: false };
    await expectations.settlePoll(settlement);
    await expectations.expect(expected({ reference: 'e' }));
    const references = async () => {
      const page = await expectations.list({ filter: {}, limit: 10, after: null });
      return page.expectations.map(({ reference }) => reference);
    };
    expect(await references()).toEqual(['e', 'd', 'b', 'a']);
    await expectations.expect(expected({ reference: 'f' }));
    expect(await references()).toEqual(['f', 'e', 'd', 'b']);
  });
});
