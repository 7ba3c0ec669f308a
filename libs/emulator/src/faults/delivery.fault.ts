import type { RandomStream } from '../random/random.source.js';
import type { FaultDice } from './fault.dice.js';
import { drawDelay } from './fault.dice.js';
import type { DeliveryFaults } from './fault.plan.js';

/** What goes wrong with an event as a whole. */
export interface EventFaults {
  /** Counts the company's events from 0. */
  readonly number: number;
  readonly drop: boolean;
  /** For each delivery of the event, the first and its copies: milliseconds to wait. */
  readonly delays: readonly number[];
  readonly reorder: { readonly window: number; readonly maxWaitMs: number } | undefined;
  /** Milliseconds before each further attempt. */
  readonly redeliver: readonly number[];
}

/** What goes wrong with one attempt. */
export interface AttemptFaults {
  readonly tamperBody: 'value' | 'respace' | 'truncate' | undefined;
  readonly tamperSignature: 'digit' | 'missing' | 'malformed' | 'scheme' | undefined;
  readonly oldSecret: boolean;
}

export function drawEventFaults(
  company: FaultDice,
  { number, dice }: { readonly number: number; readonly dice: RandomStream },
  redeliver: readonly number[],
): EventFaults {
  const faults: DeliveryFaults = company.plan.delivery ?? {};
  const drop = company.strikes(faults.drop, dice);
  const copies =
    !drop && company.strikes(faults.duplicate, dice) ? (faults.duplicate?.copies ?? 1) : 0;
  const held = !drop && company.strikes(faults.reorder, dice);
  return {
    number,
    drop,
    delays: Array.from({ length: 1 + copies }, () =>
      !drop && faults.delay && company.strikes(faults.delay, dice)
        ? drawDelay(faults.delay.ms, dice)
        : 0,
    ),
    reorder: held
      ? { window: faults.reorder?.window ?? 4, maxWaitMs: faults.reorder?.maxWaitMs ?? 1000 }
      : undefined,
    redeliver: faults.redeliver ?? redeliver,
  };
}

export function drawAttemptFaults(company: FaultDice, dice: RandomStream): AttemptFaults {
  const { tamperBody, tamperSignature, oldSecret } = company.plan.delivery ?? {};
  return {
    tamperBody: company.strikes(tamperBody, dice) ? (tamperBody?.how ?? 'value') : undefined,
    tamperSignature: company.strikes(tamperSignature, dice)
      ? (tamperSignature?.how ?? 'digit')
      : undefined,
    oldSecret: company.strikes(oldSecret, dice),
  };
}
