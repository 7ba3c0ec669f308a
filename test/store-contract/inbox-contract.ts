import { deepEqual } from 'node:assert/strict';
import { activityCases } from './activity-cases.ts';
import { assignCases } from './assign-cases.ts';
import { catalogCases } from './handler-catalog-cases.ts';
import { claimCases } from './claim-cases.ts';
import { duplicateCases } from './duplicate-cases.ts';
import { expectationCases } from './expectation-cases.ts';
import { fencingCases } from './fencing-cases.ts';
import { fulfilmentCases } from './fulfilment-cases.ts';
import { operatorCases } from './operator-cases.ts';
import { orderingCases } from './ordering-cases.ts';
import { pollCases } from './poll-cases.ts';
import { queryCases } from './query-cases.ts';
import { recordCases } from './record-cases.ts';
import { searchCases } from './search-cases.ts';
import { receiveCases } from './receive-cases.ts';
import { settleCases } from './settle-cases.ts';
import { suspectCases } from './suspect-cases.ts';
import { timeCases } from './time-cases.ts';
import { transitionCases } from './transition-cases.ts';
import { workerCases } from './worker-cases.ts';
import type { InboxContractCase, InboxContractOptions } from './contract-fixtures.ts';

/** A case for any test runner. */
export interface ReadyCase {
  readonly title: string;
  /** Why the case does not apply to this store; `null` if it applies. */
  readonly skipped: string | null;
  readonly run: () => Promise<void>;
}

/**
 * The promises of every inbox store, as cases for any test runner. A case that does not apply to the store, by its
 * `capabilities`, is included and marked as skipped. Allow 30 seconds for each case.
 *
 * @example
 * ```ts
 * for (const { title, skipped, run } of inboxContract({ capabilities, breakable: false, start })) {
 *   (skipped === null ? it : it.skip)(title, run);
 * }
 * ```
 */
export function inboxContract(options: InboxContractOptions): ReadyCase[] {
  const { capabilities, breakable, start } = options;
  const has = { ...capabilities, breakable, hostClock: !capabilities.ownClock };
  return CASES.map(({ title, needs, run }) => {
    const applies = needs === undefined || has[needs];
    return {
      title: applies ? title : `${title} (not promised: ${needs})`,
      skipped: applies ? null : `the store is not ${needs}`,
      run: async () => {
        const inbox = await start();
        try {
          deepEqual({ ...inbox.store.capabilities }, { ...capabilities });
          await run(inbox);
        } finally {
          await inbox.dispose();
        }
      },
    };
  });
}

const CASES: readonly InboxContractCase[] = [
  ...receiveCases,
  ...duplicateCases,
  ...assignCases,
  ...claimCases,
  ...orderingCases,
  ...settleCases,
  ...fencingCases,
  ...workerCases,
  ...suspectCases,
  ...catalogCases,
  ...operatorCases,
  ...queryCases,
  ...searchCases,
  ...activityCases,
  ...timeCases,
  ...transitionCases,
  ...expectationCases,
  ...fulfilmentCases,
  ...pollCases,
  ...recordCases,
];
