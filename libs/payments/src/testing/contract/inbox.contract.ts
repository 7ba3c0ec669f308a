import type { InboxCapabilities, InboxStore } from '../../inbox/inbox-store.js';
import { activityCases } from './activity.cases.js';
import { claimCases } from './claim.cases.js';
import { commitCases } from './commit.cases.js';
import { headersCases } from './headers.cases.js';
import { historyCases } from './history.cases.js';
import { operationCases } from './operation.cases.js';
import { receiveCases } from './receive.cases.js';
import { redriveCases } from './redrive.cases.js';
import { settleCases } from './settle.cases.js';
import { staleCases } from './stale.cases.js';

/** A fresh, empty store, and what a test must be able to do to it. */
export interface InboxUnderTest {
  /** Opened. */
  readonly store: InboxStore;
  /**
   * Another opened store on the same data, as another process would have; of a worker whose clock is
   * `clockOffsetMs` off, where that is given. Of a store that is not shared: the same one.
   */
  readonly another: (options?: { clockOffsetMs?: number }) => Promise<InboxStore>;
  /** Lets `ms` milliseconds pass for the store, without waiting. */
  readonly advance: (ms: number) => Promise<void>;
  /** The application's own table: an effect written in a commit's transaction, and those that stayed. */
  readonly effects?: {
    readonly write: (tx: unknown, effect: string) => void | Promise<void>;
    readonly read: () => Promise<string[]>;
  };
  /** Takes the store's database down, where `breakable` says that it can. */
  readonly breakDown?: () => Promise<void>;
  /** Closes every store and removes the data. */
  readonly dispose: () => Promise<void>;
}

/** A store's promises, to be proved. */
export interface InboxContractOptions {
  /** What the store under test promises. */
  readonly capabilities: InboxCapabilities;
  /** Whether {@link InboxUnderTest.breakDown} is there: false where no database stands behind the store. */
  readonly breakable: boolean;
  /** Makes a fresh one for each case. */
  readonly start: () => Promise<InboxUnderTest>;
}

/** One promise of the contract. */
export interface InboxContractCase {
  /** The promise, in the present tense. */
  readonly title: string;
  /** What the store must be capable of, or the case does not apply to it: shown, not run. */
  readonly needs?: keyof InboxCapabilities | 'breakable';
  /** Throws an `AssertionError` where the promise is broken. */
  readonly run: (this: void, inbox: InboxUnderTest) => Promise<void>;
}

/** A case, ready for any test runner. */
export interface ReadyCase {
  readonly title: string;
  /** Why it does not apply to this store; `null` where it does. */
  readonly skipped: string | null;
  readonly run: () => Promise<void>;
}

/**
 * What every inbox store promises, as cases for any test runner. A case that a store cannot promise, by its
 * own `capabilities`, is there all the same, marked as skipped.
 *
 * @example
 * ```ts
 * for (const { title, skipped, run } of inboxContract({ capabilities, start })) {
 *   (skipped ? it.skip : it)(title, run);
 * }
 * ```
 */
export function inboxContract(options: InboxContractOptions): ReadyCase[] {
  const abilities = { ...options.capabilities, breakable: options.breakable };
  return CASES.map(({ title, needs, run }) => {
    const able = needs === undefined || abilities[needs];
    return {
      title: able ? title : `${title} (not promised: ${needs})`,
      skipped: able ? null : `the store is not ${needs}`,
      run: async () => {
        const inbox = await options.start();
        try {
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
  ...claimCases,
  ...settleCases,
  ...commitCases,
  ...redriveCases,
  ...operationCases,
  ...headersCases,
  ...historyCases,
  ...activityCases,
  ...staleCases,
];
