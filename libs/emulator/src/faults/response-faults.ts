import type { RandomStream } from '../runtime/random-source.js';
import type { CompanyFaults } from './company-faults.js';
import { drawDelay } from './company-faults.js';
import type { ResponseFaults } from './fault-plan.js';

export interface DrawnResponseFaults {
  /** Milliseconds to wait before the request is handled. */
  readonly delayMs: number;
  readonly effect: ResponseEffect | undefined;
}

/** A change of a response by a fault. */
export type ResponseEffect =
  | { readonly kind: 'reset'; readonly when: 'before' | 'after' }
  | { readonly kind: 'status'; readonly status: number; readonly retryAfter?: string }
  | { readonly kind: 'truncate' }
  | { readonly kind: 'oversize'; readonly bytes: number; readonly encoding: 'identity' | 'gzip' };

export function drawResponseFaults(
  company: CompanyFaults,
  faults: ResponseFaults = {},
  random: RandomStream,
): DrawnResponseFaults {
  const slow = company.applies(faults.slow, random) ? faults.slow : undefined;
  return {
    delayMs: slow ? drawDelay(slow.ms, random) : 0,
    effect: drawEffect(company, faults, random),
  };
}

function drawEffect(
  company: CompanyFaults,
  faults: ResponseFaults,
  random: RandomStream,
): ResponseEffect | undefined {
  if (company.applies(faults.reset, random)) {
    return { kind: 'reset', when: faults.reset?.when ?? 'before' };
  }
  if (company.applies(faults.unauthorized, random)) return { kind: 'status', status: 401 };
  if (company.applies(faults.error, random)) {
    return { kind: 'status', status: faults.error?.status ?? 503 };
  }
  if (company.applies(faults.rateLimit, random)) {
    return { kind: 'status', status: 429, retryAfter: String(faults.rateLimit?.retryAfter ?? 1) };
  }
  if (company.applies(faults.truncate, random)) return { kind: 'truncate' };
  if (company.applies(faults.oversize, random)) {
    const { bytes = 16_777_216, encoding = 'identity' } = faults.oversize ?? {};
    return { kind: 'oversize', bytes, encoding };
  }
  return undefined;
}
