import type { InboxCapabilities, InboxStore } from '../../inbox/store/inbox-store.js';

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
