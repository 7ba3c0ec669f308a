import { PaymentsError } from '../../libs/payments/dist/payments.errors.js';
import type { InboxStore, Lease } from '../../libs/payments/dist/inbox/inbox-store.js';

/** The transaction of the simulation: effects that exist if and only if it commits. */
export interface SimulatedTransaction {
  write(effect: string): void;
}

/** A store, and the effects that its transactions committed. */
export interface SimulatedDatabase {
  readonly store: InboxStore;
  /** Effects of transactions that committed, in their order. */
  effects(): Promise<readonly string[]>;
  close(): Promise<void>;
}

/**
 * Makes the memory store durable, shared and transactional: it outlives the simulated processes, and a commit applies
 * its effects and settles its delivery in one step that no fault divides.
 */
export function durableMemory(memory: InboxStore): SimulatedDatabase {
  const committed: string[] = [];
  const commit = async (
    lease: Lease,
    work: (tx: SimulatedTransaction) => unknown,
  ): Promise<unknown> => {
    const effects: string[] = [];
    const result = await work({ write: (effect) => effects.push(effect) });
    const { settled, nextDue } = await memory.complete(lease);
    if (!settled) throw new PaymentsError('lease_lost', 'The delivery belongs to another run.');
    committed.push(...effects);
    return { result, nextDue };
  };
  const capabilities = { durable: true, shared: true, transactional: true, ownClock: true };
  const store = new Proxy(memory, {
    get: (target, name) => {
      if (name === 'capabilities') return capabilities;
      if (name === 'commit') return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  return { store, effects: async () => committed, close: async () => {} };
}
