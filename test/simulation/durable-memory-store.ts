import { PaymentsError } from '../../libs/payments/dist/errors/payments-error.js';
import type { PaymentsRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import type { InboxStore, Lease } from '../../libs/payments/dist/inbox/store/inbox-store.js';

/** A store that several simulated processes use, and the effects that its transactions committed. */
export interface SimulatedDatabase {
  /** A store for the checks. It has no faults. */
  readonly store: InboxStore;
  /** The store as a process opens it. */
  connect(runtime: PaymentsRuntime): InboxStore;
  /** Whether the work of a commit must be synchronous. */
  readonly synchronous: boolean;
  /** Writes an effect, as part of a transaction. */
  write(tx: unknown, effect: string): void | Promise<void>;
  /** The effects of committed transactions. */
  effects(): Promise<readonly string[]>;
}

/**
 * Makes the memory store durable, shared and transactional: it stays when a simulated process ends, and a commit stores
 * its effects and settles its delivery in one step, which no fault interrupts.
 */
export function durableMemory(memory: InboxStore): SimulatedDatabase {
  const committed: string[] = [];
  const commit = async (lease: Lease, work: (tx: string[]) => unknown): Promise<unknown> => {
    const effects: string[] = [];
    const result = await work(effects);
    const { settled, nextDue } = await memory.complete(lease);
    if (!settled)
      throw new PaymentsError('lease_lost', 'Another worker has taken over the delivery.');
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
  return {
    store,
    connect: () => store,
    synchronous: false,
    write: (tx, effect) => void (tx as string[]).push(effect),
    effects: async () => committed,
  };
}
