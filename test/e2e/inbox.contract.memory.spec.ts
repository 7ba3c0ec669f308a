import { describe, it } from '@jest/globals';
import { inboxContract } from 'nestjs-payments/testing';
import { MemoryStore } from '../../libs/payments/src/inbox/memory/memory.store.js';
import { FakeRuntime } from '../support/fake.runtime.js';

describe('memory inbox', () => {
  const cases = inboxContract({
    capabilities: { durable: false, shared: false, transactional: false, ownClock: false },
    breakable: false,
    start: async () => {
      const runtime = new FakeRuntime();
      const store = new MemoryStore(
        { maxEvents: 10_000, maxBytes: 1e9, retentionMs: 1e12 },
        runtime,
      );
      await store.open();
      return {
        store,
        another: async () => store,
        advance: async (ms) => runtime.advance(ms),
        dispose: () => store.close(),
      };
    },
  });
  for (const { title, skipped, run } of cases) (skipped ? it.skip : it)(title, run);
});
