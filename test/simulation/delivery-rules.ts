import type { DeliveryState } from '../../libs/payments/dist/inbox/store/inbox-store.js';

/** The expected state of a delivery. */
export interface ModelDelivery {
  state: DeliveryState;
  attempts: number;
  /** The last claim, while the delivery is `running`. */
  holder: { token: number; worker: string; suspect: boolean; since: number } | null;
  /** The number of times that an operator forced a done delivery to run again. */
  forced: number;
}

export type OperatorAction = 'skip' | 'redrive' | 'redrive by force';

export function newDelivery(state: DeliveryState = 'pending', attempts = 0): ModelDelivery {
  return { state, attempts, holder: null, forced: 0 };
}

/** Checks that a failed attempt is retried if and only if it must be. Returns the violations. */
export function checkFailure(
  key: string,
  attempts: number,
  { retryInMs, error }: { readonly retryInMs: number | null; readonly error: string },
  maxAttempts: number,
): string[] {
  const unrecoverable = error.includes('fail for good');
  if (retryInMs === null) {
    const allowed = attempts >= maxAttempts || unrecoverable;
    return allowed ? [] : [`IN-18 ${key} is dead after ${attempts} attempts: ${error}`];
  }
  return [
    ...(attempts >= maxAttempts ? [`IN-18 ${key} will be retried after ${attempts} attempts`] : []),
    ...(unrecoverable ? [`IN-18 ${key} will be retried although its error is unrecoverable`] : []),
  ];
}

/** Applies an operator's action to the model of a delivery. Returns violations of the rules for such actions. */
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
