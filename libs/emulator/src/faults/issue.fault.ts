import type { RandomStream } from '../random/random.source.js';
import type { FaultDice } from './fault.dice.js';

/** What is odd about a token that is issued. */
export interface IssueFaults {
  /** Seconds; undefined for the ordinary lifetime. */
  readonly lifetime: number | undefined;
  /** Present where `expires_in` is not the lifetime; undefined leaves the field out. */
  readonly expiresIn?: unknown;
  readonly sameToken: boolean;
}

export function drawIssueFaults(company: FaultDice, dice: RandomStream): IssueFaults {
  const { lifetime, expiresIn, sameToken } = company.plan.token ?? {};
  return {
    lifetime: company.strikes(lifetime, dice) ? lifetime?.seconds : undefined,
    ...(company.strikes(expiresIn, dice) ? { expiresIn: expiresIn?.value } : {}),
    sameToken: company.strikes(sameToken, dice),
  };
}
