import type { EmulatorCore } from '../emulator-core.js';
import type { Transaction } from './transaction.js';

/**
 * Applies the faults `notFound` and `otherStatus` to a transaction in a response. Returns undefined if a fault hides
 * the transaction.
 */
export function lookUp(core: EmulatorCore, transaction: Transaction): Transaction | undefined {
  const { clock, failedStatus } = core.options;
  const { companyId, createdAt, completedAt } = transaction;
  const age = clock.now() - Date.parse(createdAt);
  const { notFound, otherStatus } = core.faults.forLookup(
    companyId,
    age,
    completedAt !== undefined,
  );
  if (notFound) return undefined;
  return otherStatus ? { ...transaction, status: otherStatus.status ?? failedStatus } : transaction;
}
