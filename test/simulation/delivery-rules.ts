import type { DeliveryState } from '../../libs/payments/dist/inbox/store/inbox-store.js';

/** What a delivery must be. */
export interface ModelDelivery {
  state: DeliveryState;
  attempts: number;
  /** Who claimed it last, while it is `running`. */
  holder: { token: number; worker: string; alone: boolean; since: number } | null;
  /** Times that an operator forced it to run again. */
  forced: number;
}

export type OperatorAction = 'skip' | 'redrive' | 'redrive by force';

export function newDelivery(state: DeliveryState = 'pending', attempts = 0): ModelDelivery {
  return { state, attempts, holder: null, forced: 0 };
}

/** Whether a failed attempt may be followed by another one, or by none. Returns what is wrong. */
export function checkFailure(
  key: string,
  attempts: number,
  { retryInMs, error }: { readonly retryInMs: number | null; readonly error: string },
  maxAttempts: number,
): string[] {
  const unrecoverable = error.includes('gave up');
  if (retryInMs === null) {
    const allowed = attempts >= maxAttempts || unrecoverable;
    return allowed ? [] : [`IN-18 ${key} is dead after ${attempts} attempts: ${error}`];
  }
  return [
    ...(attempts >= maxAttempts ? [`IN-18 ${key} is to run again after ${attempts} attempts`] : []),
    ...(unrecoverable ? [`IN-18 ${key} is to run again though its handler gave up`] : []),
  ];
}

/** Changes a delivery to what an operator's action made of it. Returns what the action must not have done. */
export function applyAction(
  key: string,
  model: ModelDelivery,
  { state, attempts }: { readonly state: DeliveryState; readonly attempts: number },
  by: OperatorAction,
): string[] {
  const violations: string[] = [];
  if (model.state === state && state !== 'pending') return violations;
  if (model.state === 'done') {
    if (by !== 'redrive by force') violations.push(`IN-20 ${by} changed ${key}, which was done`);
    model.forced += 1;
  }
  if (model.state === 'running' && state !== 'pending' && state !== 'skipped') {
    violations.push(`${by} made ${key} ${state} while it ran`);
  }
  const restarted = model.state !== 'pending' && model.state !== 'running' && state === 'pending';
  if (restarted && attempts !== 0) {
    violations.push(`IN-20 ${by} of ${key} kept ${attempts} attempts`);
  }
  if (by === 'skip' && state === 'pending') return violations;
  Object.assign(model, { state, attempts, holder: null });
  return violations;
}
