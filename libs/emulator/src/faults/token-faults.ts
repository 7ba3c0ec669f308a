import type { RandomStream } from '../runtime/random-source.js';
import type { CompanyFaults } from './company-faults.js';

/** The faults of one token that is issued. */
export interface DrawnTokenFaults {
  /** Lifetime in seconds. Undefined if the configured lifetime applies. */
  readonly lifetime: number | undefined;
  /**
   * The value that replaces `expires_in`, if this field is present. If the value is undefined, `expires_in` is omitted.
   */
  readonly expiresIn?: unknown;
  /** Whether to return the previous token again. */
  readonly sameToken: boolean;
}

/** Decides at random which of the configured faults a new token gets. */
export function drawTokenFaults(company: CompanyFaults, random: RandomStream): DrawnTokenFaults {
  const { lifetime, expiresIn, sameToken } = company.plan.token ?? {};
  return {
    lifetime: company.applies(lifetime, random) ? lifetime?.seconds : undefined,
    ...(company.applies(expiresIn, random) ? { expiresIn: expiresIn?.value } : {}),
    sameToken: company.applies(sameToken, random),
  };
}
