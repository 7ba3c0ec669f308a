import { equal } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type {
  ClaimedDelivery,
  DeliverySelection,
  EventFilter,
  HandlerDeclaration,
  HeartbeatResult,
  InboxCapabilities,
  InboxStore,
  IncomingEvent,
  StoredEvent,
  StoreReceipt,
} from '../../libs/payments/dist/inbox/store/inbox-store.js';

/** A new, empty store, and what a test must be able to do with it. */
export interface InboxUnderTest {
  /** The store, opened. */
  readonly store: InboxStore;
  /**
   * Opens another store on the same data, as another process would. The clock of that process is `clockOffsetMs` ahead,
   * or behind if negative. If the store is not shared, it returns the same store.
   */
  readonly another: (options?: { clockOffsetMs?: number }) => Promise<InboxStore>;
  /** Moves every clock that these stores use `ms` milliseconds ahead, without waiting. */
  readonly advance: (ms: number) => Promise<void>;
  /** Moves only the wall clock of these stores. Required unless `capabilities.ownClock`. */
  readonly jumpWallClock?: (ms: number) => void;
  /**
   * The application's own table: `write` adds an effect in the transaction of a commit, and `read` returns the
   * committed effects.
   */
  readonly effects?: {
    readonly write: (tx: unknown, effect: string) => void | Promise<void>;
    readonly read: () => Promise<string[]>;
  };
  /** Makes the store's database unavailable. Required if `breakable`. */
  readonly breakDown?: () => Promise<void>;
  /** Closes every store and removes the data. */
  readonly dispose: () => Promise<void>;
}

/** The promises of a store, and a way to start it. */
export interface InboxContractOptions {
  /** The capabilities of the store under test. Each case checks that `store.capabilities` is equal. */
  readonly capabilities: InboxCapabilities;
  /** Whether {@link InboxUnderTest.breakDown} exists: `false` for a store without a database. */
  readonly breakable: boolean;
  /** Starts a new, empty store for each case. */
  readonly start: () => Promise<InboxUnderTest>;
}

/** One promise of the contract. */
export interface InboxContractCase {
  /** The promise, in the present tense. */
  readonly title: string;
  /**
   * The property that the store must have. Without this property, the case does not apply. `hostClock`: the store has
   * no clock of its own.
   */
  readonly needs?: keyof InboxCapabilities | 'breakable' | 'hostClock';
  /** Throws an `AssertionError` if the promise is broken. */
  readonly run: (this: void, inbox: InboxUnderTest) => Promise<void>;
}

/** `leaseMs` of the workers in the contract's cases. */
export const LEASE_MS = 60_000;
export const DAY_MS = 86_400_000;

/** Options of a redrive of one event, due at once. */
export const REDRIVE_NOW = { force: false, dueInMs: [0] };

/** {@link REDRIVE_NOW} that also redrives deliveries that are done. */
export const REDRIVE_FORCED = { force: true, dueInMs: [0] };

/** A selection of one event's deliveries to the handlers; without handlers: to `book`. */
export function select(id: string, ...handlers: string[]): DeliverySelection[] {
  return [{ company: 'acme', id, handlers: handlers.length > 0 ? handlers : ['book'] }];
}

/** An event for one handler, `book`. The given fields replace the defaults. */
export function incoming(event: Partial<IncomingEvent> = {}): IncomingEvent {
  const id = event.id ?? randomUUID();
  return {
    company: 'acme',
    id,
    eventType: 'transaction.completed',
    occurredAt: new Date('2025-11-20T10:00:00.000Z'),
    orderingKey: null,
    raw: Buffer.from(`{"id":"${id}"}`),
    headers: {},
    oncePerTransaction: false,
    handlers: ['book'],
    catalogVersion: 0,
    assign: null,
    stale: false,
    source: 'webhook',
    reference: null,
    summary: null,
    fulfils: false,
    ...event,
  };
}

export class TestWorker {
  private constructor(
    readonly store: InboxStore,
    readonly id: string,
  ) {}

  /** Without `handlers`, the version of the catalog stays 0, as in {@link incoming}. */
  static async start(
    store: InboxStore,
    handlers: readonly HandlerDeclaration[] = [],
    leaseMs = LEASE_MS,
  ): Promise<TestWorker> {
    const worker = new TestWorker(store, randomUUID());
    await store.register({ id: worker.id, leaseMs, handlers });
    return worker;
  }

  /**
   * Claims deliveries. If a claim finds only deliveries of busy keys, these deliveries begin to wait for their turn,
   * and this method claims again.
   */
  async claim(handlers: readonly string[] = ['book'], limit = 100): Promise<ClaimedDelivery[]> {
    const wanted = handlers.map((handler) => ({ handler, limit }));
    for (let tries = 0; tries < 20; tries += 1) {
      const claimed = await this.store.claim({ workerId: this.id, wanted });
      const dueInMs = claimed.length > 0 ? null : await this.store.nextDueInMs(handlers);
      if (dueInMs === null || dueInMs > 0) return claimed;
    }
    return [];
  }

  /** Claims the only delivery that is due. */
  async claimOne(handler = 'book'): Promise<ClaimedDelivery> {
    const claimed = await this.claim([handler]);
    equal(claimed.length, 1, `${claimed.length} deliveries are due to ${handler}, not one`);
    return claimed[0]!;
  }

  async claimSuspect(handlers = ['book']): Promise<ClaimedDelivery | null> {
    return this.store.claimSuspect({ workerId: this.id, handlers });
  }

  /**
   * Sends two heartbeats, because a first heartbeat that is late only renews the lease, and declares no worker dead.
   */
  async heartbeat(): Promise<HeartbeatResult> {
    await this.store.heartbeat(this.id);
    return this.store.heartbeat(this.id);
  }

  /**
   * Advances the clock by a lease, in which only this worker sends heartbeats. Its last heartbeat declares the other
   * workers dead.
   */
  async declareOthersDead(advance: (ms: number) => Promise<void>): Promise<HeartbeatResult> {
    await this.heartbeat();
    await advance(LEASE_MS + 1000);
    return this.heartbeat();
  }
}

/** Two workers of two processes. */
export async function twoWorkers({
  store,
  another,
}: Pick<InboxUnderTest, 'store' | 'another'>): Promise<[TestWorker, TestWorker]> {
  return [await TestWorker.start(store), await TestWorker.start(await another())];
}

/** Processes that crash one after the other, and an observer that declares them dead. */
export class Crashes {
  private constructor(
    readonly store: InboxStore,
    readonly observer: TestWorker,
    private readonly advance: InboxUnderTest['advance'],
    private readonly catalogVersion: number,
  ) {}

  static async start({ store, another, advance }: InboxUnderTest): Promise<Crashes> {
    const handlers = [{ name: 'book', patterns: ['*'] }];
    const observer = await TestWorker.start(await another(), handlers);
    return new Crashes(store, observer, advance, (await store.catalog()).version);
  }

  event(fields: Partial<IncomingEvent> = {}): IncomingEvent {
    return incoming({ catalogVersion: this.catalogVersion, ...fields });
  }

  /** Stores an event whose delivery to `book` is a suspect: the process that claimed it crashed. */
  async addSuspect(fields: Partial<IncomingEvent> = {}): Promise<IncomingEvent> {
    const event = this.event(fields);
    await this.store.receive([event]);
    await this.crash((worker) => worker.claimOne());
    return event;
  }

  /** Starts a process that claims something and then crashes. Returns what it claimed. */
  async crash<T>(claim: (worker: TestWorker) => Promise<T>): Promise<T> {
    const worker = await TestWorker.start(this.store);
    const claimed = await claim(worker);
    await this.observer.declareOthersDead(this.advance);
    return claimed;
  }
}

/** `state attempts` of an event's deliveries, by handler. */
export async function states(
  store: InboxStore,
  { id, company = 'acme' }: { id: string; company?: string },
): Promise<Record<string, string>> {
  const { deliveries = [] } = (await store.find(company, id)) ?? {};
  return Object.fromEntries(
    deliveries.map(({ handler, state, attempts }) => [handler, `${state} ${attempts}`]),
  );
}

/** Attempt, outcome and error of each entry in the history of an event's first delivery. */
export async function attemptsOf(store: InboxStore, { id }: { id: string }): Promise<unknown[][]> {
  const event = await store.find('acme', id);
  const history = event?.deliveries[0]?.history ?? [];
  return history.map(({ attempt, outcome, error }) => [attempt, outcome, error]);
}

/** The first 1,000 events, the oldest first. */
export async function listAll(
  store: InboxStore,
  filter: EventFilter = {},
): Promise<readonly StoredEvent[]> {
  return (await store.list({ filter, order: 'oldest', limit: 1000, after: null })).events;
}

/** Removes a handler and skips its pending and dead deliveries. Returns how many it skipped; `null` if a worker has it. */
export async function forgetHandler(store: InboxStore, handler: string): Promise<number | null> {
  if (!(await store.forgetHandler(handler))) return null;
  const events = await listAll(store, { handler });
  return store.skip(events.map(({ company, id }) => ({ company, id, handlers: [handler] })));
}

/** Calls `prune` until it changes nothing more. */
export async function pruneAll(
  store: InboxStore,
  bodiesMs: number,
  tombstonesMs: number,
): Promise<void> {
  while ((await store.prune({ bodiesMs, tombstonesMs, limit: 10 })) > 0);
}

export function outcomesOf(receipts: readonly StoreReceipt[]): string[] {
  return receipts.map(({ outcome }) => outcome);
}

export function handlersOf(of: readonly { readonly handler: string }[]): string[] {
  return of.map(({ handler }) => handler);
}

export function idsOf(of: readonly { readonly id: string }[]): string[] {
  return of.map(({ id }) => id);
}

/** Pseudorandom numbers from 0 to 1. The same seed gives the same numbers. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
