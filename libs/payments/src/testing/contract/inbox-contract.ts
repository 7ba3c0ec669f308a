import { deepEqual } from 'node:assert/strict';
import { activityCases } from './activity-cases.js';
import { assignCases } from './assign-cases.js';
import { catalogCases } from './catalog-cases.js';
import { claimCases } from './claim-cases.js';
import { duplicateCases } from './duplicate-cases.js';
import { expectationCases } from './expectation-cases.js';
import { fencingCases } from './fencing-cases.js';
import { fulfilmentCases } from './fulfilment-cases.js';
import { operatorCases } from './operator-cases.js';
import { orderingCases } from './ordering-cases.js';
import { pollCases } from './poll-cases.js';
import { queryCases } from './query-cases.js';
import { searchCases } from './search-cases.js';
import { receiveCases } from './receive-cases.js';
import { settleCases } from './settle-cases.js';
import { suspectCases } from './suspect-cases.js';
import { timeCases } from './time-cases.js';
import { transitionCases } from './transition-cases.js';
import { workerCases } from './worker-cases.js';
import type { InboxContractCase, InboxContractOptions } from './contract-fixtures.js';

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
 *   (skipped === null ? it : it.skip)(title, run, 30_000);
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
];
