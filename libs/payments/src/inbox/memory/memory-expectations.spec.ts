import { beforeEach, describe, expect, it } from '@jest/globals';
import { incoming } from '../../testing/contract/contract-fixtures.js';
import { expected, fulfilling } from '../../testing/contract/expectation-cases.js';
import { startMemoryStore } from '../../../../../test/support/inbox/memory-harness.js';
import type { MemoryHarness } from '../../../../../test/support/inbox/memory-harness.js';

let clock: MemoryHarness['clock'];
let store: MemoryHarness['store'];

beforeEach(async () => {
  ({ clock, store } = await startMemoryStore({ maxEvents: 4, maxBytes: 10_000 }));
});

const expectFour = async (): Promise<void> => {
  for (const reference of ['a', 'b', 'c', 'd']) {
    await store.expectations.expect(expected({ reference, transactionId: 'tx' }));
  }
};

describe('MemoryExpectations', () => {
  it('EX-01 expect and attach throw a TypeError if they get a transaction', async () => {
    const { expectations } = store;
    await expect(expectations.expect(expected({ reference: 'a' }), {})).rejects.toThrow(TypeError);
    expect(await expectations.find('acme', 'a')).toBe(undefined);
    await expectations.expect(expected({ reference: 'a' }));
    await expect(expectations.attach('acme', 'a', 'tx', {})).rejects.toThrow(TypeError);
    expect(await expectations.attach('acme', 'a', 'tx')).toBe('attached');
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

  it('a new expectation replaces the one that ended first', async () => {
    await expectFour();
    const { expectations } = store;
    clock.now = 1;
    await expectations.cancel('acme', 'c');
    clock.now = 2;
    await expectations.cancel('acme', 'b');
    await expectations.expect(expected({ reference: 'e' }));
    const page = await expectations.list({ filter: {}, limit: 10, after: null });
    expect(page.expectations.map(({ reference }) => reference)).toEqual(['e', 'd', 'b', 'a']);
  });

  it('an expectation that ended is forgotten after retentionMs, and a waiting one is not', async () => {
    await expectFour();
    const { expectations } = store;
    await expectations.cancel('acme', 'a');
    clock.now = 60;
    await expectations.expect(expected({ reference: 'e', transactionId: 'tx' })).catch(() => {});
    expect(await expectations.find('acme', 'a')).toBe(undefined);
    expect((await expectations.find('acme', 'b'))?.state).toBe('waiting');
    await store.receive([fulfilling({ orderingKey: 'tx' })]);
    expect(await expectations.counts()).toMatchObject({ waiting: { count: 0 } });
  });
});
