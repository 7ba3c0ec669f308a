import type { RandomStream } from '../runtime/random-source.js';
import type { CompanyFaults } from './company-faults.js';

export interface DrawnLookupFaults {
  /** Whether the response hides the transaction. */
  readonly notFound: boolean;
  /**
   * The status that the response returns instead of the transaction's status. Undefined if the response returns the
   * transaction's status. If `status` is undefined, the option `failedStatus` applies.
   */
  readonly otherStatus: { readonly status: string | undefined } | undefined;
}

export interface LookedUpTransaction {
  /** Milliseconds since the creation of the transaction, by the emulator's clock. */
  readonly age: number;
  readonly complete: boolean;
  readonly random: RandomStream;
}

/** If a fault cannot apply to the transaction, the remaining count of the fault stays the same. */
export function drawLookupFaults(
  company: CompanyFaults,
  { age, complete, random }: LookedUpTransaction,
): DrawnLookupFaults {
  const { notFound, otherStatus } = company.plan.api ?? {};
  if (age < (notFound?.forMs ?? Infinity) && company.applies(notFound, random)) {
    return { notFound: true, otherStatus: undefined };
  }
  const contradicted = complete && company.applies(otherStatus, random);
  return {
    notFound: false,
    otherStatus: contradicted ? { status: otherStatus?.status } : undefined,
  };
}
