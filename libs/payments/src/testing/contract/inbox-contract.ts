import { deepEqual } from 'node:assert/strict';
import { activityCases } from './activity-cases.js';
import { assignCases } from './assign-cases.js';
import { catalogCases } from './catalog-cases.js';
import { claimCases } from './claim-cases.js';
import { clockCases } from './clock-cases.js';
import { commitCases } from './commit-cases.js';
import type { InboxContractCase, InboxContractOptions } from './contract-case.js';
import { headersCases } from './headers-cases.js';
import { historyCases } from './history-cases.js';
import { listCases } from './list-cases.js';
import { onceCases } from './once-cases.js';
import { orderingCases } from './ordering-cases.js';
import { pauseCases } from './pause-cases.js';
import { poisonCases } from './poison-cases.js';
import { pruneCases } from './prune-cases.js';
import { receiveCases } from './receive-cases.js';
import { redriveCases } from './redrive-cases.js';
import { settleCases } from './settle-cases.js';
import { staleCases } from './stale-cases.js';
import { statsCases } from './stats-cases.js';
import { suspectCases } from './suspect-cases.js';
import { transitionCases } from './transition-cases.js';
import { workerCases } from './worker-cases.js';

/** A case, ready for any test runner. */
export interface ReadyCase {
  readonly title: string;
  /** Why it does not apply to this store; `null` if it does. */
  readonly skipped: string | null;
  readonly run: () => Promise<void>;
}

/**
 * What every inbox store promises, as cases for any test runner. A case that a store cannot promise, by its own
 * `capabilities`, is included and marked as skipped. Allow 30 seconds for each.
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
  ...onceCases,
  ...assignCases,
  ...claimCases,
  ...orderingCases,
  ...settleCases,
  ...commitCases,
  ...workerCases,
  ...suspectCases,
  ...poisonCases,
  ...catalogCases,
  ...redriveCases,
  ...pauseCases,
  ...pruneCases,
  ...headersCases,
  ...historyCases,
  ...listCases,
  ...statsCases,
  ...activityCases,
  ...staleCases,
  ...clockCases,
  ...transitionCases,
];
