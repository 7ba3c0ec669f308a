import type { RandomStream } from '../runtime/random-source.js';
import type { CompanyFaults } from './company-faults.js';
import { drawDelay } from './company-faults.js';
import type { DeliveryFaults } from './fault-plan.js';

export interface DrawnEventFaults {
  /** Number of the event, counted separately for each company, from 0. */
  readonly number: number;
  /** The fault that prevents all attempts of the event. Undefined if no fault prevents them. */
  readonly unsent: 'off' | 'drop' | undefined;
  /** Delays in milliseconds, first of the event's first delivery, then of each copy. */
  readonly delays: readonly number[];
  readonly reorder: { readonly window: number; readonly maxWaitMs: number } | undefined;
  /** Milliseconds before each further attempt of a failed delivery. */
  readonly redeliver: readonly number[];
}

export interface DrawnAttemptFaults {
  readonly tamperBody: 'value' | 'respace' | 'truncate' | undefined;
  readonly tamperSignature: 'digit' | 'missing' | 'malformed' | 'scheme' | undefined;
  readonly oldSecret: boolean;
}

/**
 * Draws the faults of one event. `redeliver` is the redelivery schedule that applies if the fault plan contains none.
 */
export function drawEventFaults(
  company: CompanyFaults,
  { number, random }: { readonly number: number; readonly random: RandomStream },
  redeliver: readonly number[],
): DrawnEventFaults {
  const faults: DeliveryFaults = company.plan.delivery ?? {};
  const unsent = faults.off ? 'off' : company.applies(faults.drop, random) ? 'drop' : undefined;
  const sent = unsent === undefined;
  const copies =
    sent && company.applies(faults.duplicate, random) ? (faults.duplicate?.copies ?? 1) : 0;
  const reordered = sent && company.applies(faults.reorder, random);
  return {
    number,
    unsent,
    delays: Array.from({ length: 1 + copies }, () =>
      sent && faults.delay && company.applies(faults.delay, random)
        ? drawDelay(faults.delay.ms, random)
        : 0,
    ),
    reorder: reordered
      ? { window: faults.reorder?.window ?? 4, maxWaitMs: faults.reorder?.maxWaitMs ?? 1000 }
      : undefined,
    redeliver: faults.redeliver ?? redeliver,
  };
}

export function drawAttemptFaults(
  company: CompanyFaults,
  random: RandomStream,
): DrawnAttemptFaults {
  const { tamperBody, tamperSignature, oldSecret } = company.plan.delivery ?? {};
  return {
    tamperBody: company.applies(tamperBody, random) ? (tamperBody?.how ?? 'value') : undefined,
    tamperSignature: company.applies(tamperSignature, random)
      ? (tamperSignature?.how ?? 'digit')
      : undefined,
    oldSecret: company.applies(oldSecret, random),
  };
}
