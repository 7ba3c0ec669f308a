import type { RandomStream } from '../runtime/random-source.js';
import type { CompanyFaults } from './company-faults.js';

export interface DrawnTokenFaults {
  /** Lifetime in seconds. Undefined if the configured lifetime applies. */
  readonly lifetime: number | undefined;
  /** Replaces `expires_in`, if this field is present. If the value is undefined, `expires_in` is omitted. */
  readonly expiresIn?: unknown;
  /** Whether to return the previous token again. */
  readonly sameToken: boolean;
}

export function drawTokenFaults(company: CompanyFaults, random: RandomStream): DrawnTokenFaults {
  const { lifetime, expiresIn, sameToken } = company.plan.token ?? {};
  return {
    lifetime: company.applies(lifetime, random) ? lifetime?.seconds : undefined,
    ...(company.applies(expiresIn, random) ? { expiresIn: expiresIn?.value } : {}),
    sameToken: company.applies(sameToken, random),
  };
}
