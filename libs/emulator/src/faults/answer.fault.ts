import type { RandomStream } from '../random/random.source.js';
import type { FaultDice } from './fault.dice.js';
import { drawDelay } from './fault.dice.js';
import type { AnswerFaults } from './fault.plan.js';

/** What goes wrong with one answer. */
export interface AnswerFault {
  /** Milliseconds to wait first. */
  readonly slowMs: number;
  readonly spoil: SpoiltAnswer | undefined;
}

export type SpoiltAnswer =
  | { readonly kind: 'reset'; readonly when: 'before' | 'after' }
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: string }
  | { readonly kind: 'truncate' }
  | { readonly kind: 'oversize'; readonly bytes: number; readonly encoding: 'identity' | 'gzip' };

export function drawAnswerFault(
  company: FaultDice,
  faults: AnswerFaults = {},
  dice: RandomStream,
): AnswerFault {
  const slow = company.strikes(faults.slow, dice) ? faults.slow : undefined;
  return {
    slowMs: slow ? drawDelay(slow.ms, dice) : 0,
    spoil: drawSpoilt(company, faults, dice),
  };
}

function drawSpoilt(
  company: FaultDice,
  faults: AnswerFaults,
  dice: RandomStream,
): SpoiltAnswer | undefined {
  if (company.strikes(faults.reset, dice)) {
    return { kind: 'reset', when: faults.reset?.when ?? 'before' };
  }
  if (company.strikes(faults.unauthorized, dice)) return { kind: 'status', status: 401 };
  if (company.strikes(faults.error, dice)) {
    return { kind: 'status', status: faults.error?.status ?? 503 };
  }
  if (company.strikes(faults.rateLimit, dice)) {
    return { kind: 'status', status: 429, retryAfter: String(faults.rateLimit?.retryAfter ?? 1) };
  }
  if (company.strikes(faults.truncate, dice)) return { kind: 'truncate' };
  if (company.strikes(faults.oversize, dice)) {
    const { bytes = 16_777_216, encoding = 'identity' } = faults.oversize ?? {};
    return { kind: 'oversize', bytes, encoding };
  }
  return undefined;
}
