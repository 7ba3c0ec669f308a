import type { PaymentsRuntime } from '../../libs/payments/dist/runtime/payments-runtime.js';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';

/** A database that several simulated processes use, and the effects that its transactions committed. */
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
