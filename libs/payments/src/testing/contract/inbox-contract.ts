import { deepEqual } from 'node:assert/strict';
import type { InboxCapabilities, InboxStore } from '../../inbox/inbox-store.js';
import { activityCases } from './activity-cases.js';
import { assignCases } from './assign-cases.js';
import { catalogCases } from './catalog-cases.js';
import { claimCases } from './claim-cases.js';
import { clockCases } from './clock-cases.js';
import { commitCases } from './commit-cases.js';
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

/** A fresh, empty store, and what a test must be able to do to it. */
export interface InboxUnderTest {
  /** Opened. */
  readonly store: InboxStore;
  /**
   * Another opened store on the same data, as another process would have it; of a process whose clock is
   * `clockOffsetMs` off, if given. If the store is not shared: the same store.
   */
  readonly another: (options?: { clockOffsetMs?: number }) => Promise<InboxStore>;
  /** Lets `ms` milliseconds pass for all these stores, on every clock they use, without waiting. */
  readonly advance: (ms: number) => Promise<void>;
  /** Moves only the wall clock of these stores. Required unless `capabilities.ownClock`. */
  readonly jumpWallClock?: (ms: number) => void;
  /** The application's own table: an effect written in a commit's transaction, and those that were committed. */
  readonly effects?: {
    readonly write: (tx: unknown, effect: string) => void | Promise<void>;
    readonly read: () => Promise<string[]>;
  };
  /** Takes the store's database down. Required if `breakable`. */
  readonly breakDown?: () => Promise<void>;
  /** Closes every store and removes the data. */
  readonly dispose: () => Promise<void>;
}

/** The promises of a store, and how to start one. */
export interface InboxContractOptions {
  /** What the store under test promises: each case compares it with `store.capabilities`. */
  readonly capabilities: InboxCapabilities;
  /** Whether {@link InboxUnderTest.breakDown} exists: `false` for a store without a database. */
  readonly breakable: boolean;
  /** Makes a fresh one for each case. */
  readonly start: () => Promise<InboxUnderTest>;
}

/** One promise of the contract. */
export interface InboxContractCase {
  /** The promise, in the present tense. */
  readonly title: string;
  /** What the store must have for the case to apply. `hostClock`: no clock of its own. */
  readonly needs?: keyof InboxCapabilities | 'breakable' | 'hostClock';
  /** Throws an `AssertionError` if the promise is broken. */
  readonly run: (this: void, inbox: InboxUnderTest) => Promise<void>;
}

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
