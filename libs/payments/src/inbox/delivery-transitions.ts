import type { DeliveryState } from './inbox-store.js';

/** An operation that changes the state of a delivery. `new` is the start: no delivery yet. */
export interface DeliveryTransition {
  readonly from: DeliveryState | 'new';
  readonly to: DeliveryState;
  /** The method of `InboxStore` that changes it, and its case. */
  readonly by: string;
}

/** Every transition there is. The state diagram of the architecture page and the contract suite are compared with it. */
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
  { from: 'pending', to: 'skipped', by: 'forgetHandler' },
  { from: 'dead', to: 'skipped', by: 'forgetHandler' },
] as const);
