import { describe, it } from '@jest/globals';
import { inboxContract } from './inbox-contract.ts';
import { memoryStore } from '../../libs/payments/src/stores/memory/memory-store.js';
import { FakeRuntime } from '../support/time/fake-runtime.js';

describe('the contract, on the memory store', () => {
  const cases = inboxContract({
    capabilities: { durable: false, shared: false, transactional: false, ownClock: false },
    breakable: false,
    start: async () => {
      const runtime = new FakeRuntime();
      const limits = { maxEvents: 100_000, maxBytes: 1e9 };
      const store = memoryStore(limits, runtime);
      await store.open();
      return {
        store,
        another: async () => store,
        advance: async (ms) => runtime.advance(ms),
        jumpWallClock: (ms) => runtime.setWallClock(ms),
        dispose: () => store.close(),
      };
    },
  });
  for (const { title, skipped, run } of cases) (skipped === null ? it : it.skip)(title, run);
});
