import type {
  DeliveryState,
  ExpectationState,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';

/** An operation that changes the state of a delivery. `new`: the delivery does not exist yet. */
export interface DeliveryTransition {
  readonly from: DeliveryState | 'new';
  readonly to: DeliveryState;
  /** The method of `InboxStore` that changes the state, and its case. */
  readonly by: string;
}

/** All transitions. Tests compare the state diagram of the documentation and each store with this list. */
export const DELIVERY_TRANSITIONS: readonly DeliveryTransition[] = Object.freeze([
  { from: 'new', to: 'pending', by: 'receive' },
  { from: 'new', to: 'running', by: 'receive (assigned)' },
  { from: 'new', to: 'pending', by: 'redrive (added)' },
  { from: 'pending', to: 'running', by: 'claim' },
  { from: 'pending', to: 'running', by: 'claimSuspect' },
  { from: 'running', to: 'done', by: 'complete' },
  { from: 'running', to: 'done', by: 'commit' },
  { from: 'running', to: 'pending', by: 'fail (retry)' },
  { from: 'running', to: 'dead', by: 'fail (last attempt)' },
  { from: 'running', to: 'pending', by: 'release' },
  { from: 'running', to: 'pending', by: 'heartbeat (worker dead)' },
  { from: 'dead', to: 'pending', by: 'redrive' },
  { from: 'skipped', to: 'pending', by: 'redrive' },
  { from: 'done', to: 'pending', by: 'redrive (force)' },
  { from: 'pending', to: 'skipped', by: 'skip' },
  { from: 'dead', to: 'skipped', by: 'skip' },
] as const);

/** An operation that changes the state of an expectation. `new`: the expectation does not exist yet. */
export interface ExpectationTransition {
  readonly from: ExpectationState | 'new';
  readonly to: ExpectationState;
  /** The method of `ExpectationStore` or `InboxStore` that changes the state, and its case. */
  readonly by: string;
}

/** All transitions. Tests compare the state diagram of the documentation and each store with this list. */
export const EXPECTATION_TRANSITIONS: readonly ExpectationTransition[] = Object.freeze([
  { from: 'new', to: 'waiting', by: 'expect' },
  { from: 'waiting', to: 'fulfilled', by: 'receive' },
  { from: 'waiting', to: 'fulfilled', by: 'settlePoll (event)' },
  { from: 'waiting', to: 'overdue', by: 'settlePoll (schedule ended)' },
  { from: 'waiting', to: 'cancelled', by: 'cancel' },
  { from: 'waiting', to: 'cancelled', by: 'endRequest (cancelled)' },
  { from: 'overdue', to: 'fulfilled', by: 'receive' },
  { from: 'overdue', to: 'fulfilled', by: 'settlePoll (event)' },
  { from: 'overdue', to: 'cancelled', by: 'cancel' },
  { from: 'fulfilled', to: 'waiting', by: 'attach (another transaction)' },
  { from: 'cancelled', to: 'waiting', by: 'expect' },
] as const);
