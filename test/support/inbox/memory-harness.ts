import type { InboxStore } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { memoryStore } from '../../../libs/payments/src/stores/memory/memory-store.js';
import type { MemoryLimits } from '../../../libs/payments/src/stores/memory/memory-events.js';
import { TestWorker } from '../../store-contract/contract-fixtures.ts';

/** A memory store with a registered worker, and a clock that the test sets. */
export interface MemoryHarness {
  readonly store: InboxStore;
  readonly worker: TestWorker;
  /** The time of the wall clock and of the monotonic clock, in milliseconds from 0. */
  readonly clock: { now: number };
}

/** Opens a memory store with small limits: 4 events and 100 bytes. */
export async function startMemoryStore(limits: Partial<MemoryLimits> = {}): Promise<MemoryHarness> {
  const clock = { now: 0 };
  const store = memoryStore(
    { maxEvents: 4, maxBytes: 100, ...limits },
    {
      now: () => clock.now,
      monotonic: () => clock.now,
      random: () => 0.5,
      schedule: () => () => {},
    },
  );
  return { store, worker: await TestWorker.start(store), clock };
}
