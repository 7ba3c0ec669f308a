import type { Observers } from '../../telemetry/observers.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type {
  DeliverySelection,
  EventFilter,
  EventState,
  FailureCount,
  InboxStore,
  StoredDelivery,
  StoredEvent,
} from '../store/inbox-store.js';
import { assertTimes } from '../store/stored-event.js';

/** Events per call to the store. The number is small, so that storing a new event never waits long for the call. */
const PAGE = 100;
const DEFAULT_RATE = 100;
const DEFAULT_STATE = 'dead';

/** Selects the deliveries that `PaymentInbox.skip()` skips. They are in `state`, and their events match the filter. */
export interface DeliveryQuery extends EventFilter {
  /**
   * State of the deliveries. Default `dead`. With `unhandled` or `stale`, nothing is skipped, because events in these
   * states have no deliveries.
   */
  readonly state?: EventState;
  /** Selects only deliveries whose last error is in the same group as this error; see `PaymentInbox.failures()`. */
  readonly error?: string;
  /** Whether to count the deliveries without changing them. Default `false`. */
  readonly dryRun?: boolean;
}

/** Selects the deliveries that `PaymentInbox.redrive()` runs again, and how it runs them. */
export interface RedriveQuery extends DeliveryQuery {
  /**
   * The handlers to run on the matching events. Each handler must be known (see `PaymentInbox.handlers()`), and runs
   * only on events whose type it takes. If an event has no delivery to a handler, for example because the handler was
   * added later, a delivery is added, unless `error` is set. With `handlers`, `state` has no default. A stale event
   * without deliveries is ignored, unless `state` is `stale` or `ids` contains the event's id. Default: every known
   * handler if `state` is `unhandled` or `stale`; otherwise the handlers of the matching deliveries.
   */
  readonly handlers?: readonly string[];
  /** Whether to run done deliveries again too. Default `false`. */
  readonly force?: boolean;
  /** How many events become due per second: more than 0; `Infinity` for all at once. Default 100. */
  readonly ratePerSecond?: number;
}

/** The result of a redrive or a skip. */
export interface SelectionResult {
  /** Number of matching events with at least one delivery to change. */
  readonly events: number;
  /**
   * Number of deliveries that changed. In a dry run: the number that would change. The real run changes fewer if the
   * bodies of some events are pruned first.
   */
  readonly deliveries: number;
}

export class InboxRedrive {
  constructor(
    private readonly store: InboxStore,
    private readonly catalog: HandlerCatalogCache,
    private readonly observers: Observers,
  ) {}

  async redrive(query: RedriveQuery): Promise<SelectionResult> {
    const { state, ids, force = false, ratePerSecond = DEFAULT_RATE, dryRun = false } = query;
    if (typeof ratePerSecond !== 'number' || !(ratePerSecond > 0)) {
      throw new TypeError('"ratePerSecond" must be a number of events per second above 0.');
    }
    const spacingMs = 1000 / ratePerSecond;
    await this.catalog.refresh();
    const hasNoDeliveries = state === 'unhandled' || state === 'stale';
    const known = this.catalog.names();
    const { handlers = hasNoDeliveries ? known : undefined } = query;
    const unknown = handlers?.find((name) => !known.includes(name));
    if (unknown !== undefined) throw unknownHandler(unknown, known);
    const filter = filterOf(query, handlers === undefined && !force ? DEFAULT_STATE : undefined);
    const handlersToRun = (event: StoredEvent): readonly string[] => {
      // A stale event may be a replay, so its handlers run only if the query contains its id or the state `stale`.
      const mayBeReplay = event.stale && event.deliveries.length === 0;
      if (mayBeReplay && state !== 'stale' && ids === undefined) return [];
      const wanted =
        handlers === undefined
          ? matchingHandlers(event, query, filter.state)
          : handlers
              .filter((name) => this.catalog.matching(event.eventType, event.source).includes(name))
              .filter((name) => hasError(deliveryOf(event, name), query.error));
      return wanted.filter((name) => {
        // The store checks the state again.
        const delivery = deliveryOf(event, name);
        return delivery?.state !== 'running' && (delivery?.state !== 'done' || force);
      });
    };
    const result = { events: 0, deliveries: 0 };
    try {
      return await this.#each(filter, handlersToRun, result, async (selections, seen) => {
        if (dryRun) return count(selections);
        const dueInMs = selections.map((_one, index) => Math.round((seen + index) * spacingMs));
        const fulfils = this.catalog.polledTypes;
        return this.store.redrive(selections, { force, dueInMs, fulfils });
      });
    } finally {
      // Reports the changes even if a later page failed, because the earlier pages are changed.
      if (this.observers.active && !dryRun && result.deliveries > 0) {
        const [first, ...others] = handlers ?? [query.handler];
        const isKnown = first !== undefined && known.includes(first);
        const handler = isKnown && others.length === 0 ? first : null;
        const { company = null } = query;
        this.observers.notify('deliveriesRedriven', { company, handler, ...result });
      }
    }
  }

  async skip(query: DeliveryQuery): Promise<SelectionResult> {
    return this.#skip(query, async (selections) =>
      query.dryRun ? count(selections) : this.store.skip(selections),
    );
  }

  /**
   * Skips the pending and dead deliveries of a handler that was removed from the catalog, until a process registers the
   * handler again. Returns how many deliveries it skipped.
   */
  async skipRemoved(handler: string): Promise<number> {
    const skip = async (selections: readonly DeliverySelection[]): Promise<number> => {
      // The catalog is read after the page, so that a process that registers the handler loses no later event.
      const { handlers } = await this.store.catalog();
      return handlers.some(({ name }) => name === handler) ? 0 : this.store.skip(selections);
    };
    const pending = await this.#skip({ handler, state: 'pending' }, skip);
    const dead = await this.#skip({ handler, state: 'dead' }, skip);
    return pending.deliveries + dead.deliveries;
  }

  #skip(
    query: DeliveryQuery,
    skip: (selections: readonly DeliverySelection[]) => Promise<number>,
  ): Promise<SelectionResult> {
    const state = query.state ?? DEFAULT_STATE;
    const isSkippable = state === 'pending' || state === 'dead';
    const handlersToSkip = (event: StoredEvent) =>
      isSkippable ? matchingHandlers(event, query, state) : [];
    const result = { events: 0, deliveries: 0 };
    return this.#each(filterOf(query, state), handlersToSkip, result, skip);
  }

  /**
   * Reads the matching events page by page, in the order of receipt. Changes to deliveries do not affect this order, so
   * no event is left out.
   */
  async #each(
    filter: EventFilter,
    handlersOf: (event: StoredEvent) => readonly string[],
    result: { events: number; deliveries: number },
    act: (selections: readonly DeliverySelection[], seen: number) => Promise<number>,
  ): Promise<SelectionResult> {
    let after: string | null = null;
    do {
      const query = { filter, order: 'oldest', limit: PAGE, after } as const;
      const page = await this.store.list(query);
      const selections = page.events
        .map((event) => ({ company: event.company, id: event.id, handlers: handlersOf(event) }))
        .filter(({ handlers }) => handlers.length > 0);
      if (selections.length > 0) result.deliveries += await act(selections, result.events);
      result.events += selections.length;
      after = page.next;
    } while (after !== null);
    return result;
  }
}

export function unknownHandler(name: string, known: readonly string[]): TypeError {
  const names = known.toSorted().join(', ') || 'none';
  return new TypeError(`No handler is named "${name}". Known handlers: ${names}.`);
}

function filterOf(query: RedriveQuery, state: EventFilter['state']): EventFilter {
  assertTimes(query);
  // Copies each field by name, because a spread does not copy the getters of a class. A missing field would make more
  // events match.
  const { company, ids, eventType, source, from, to, handler, search } = query;
  const wanted = query.state ?? state;
  return {
    ...(company !== undefined && { company }),
    ...(ids !== undefined && { ids }),
    ...(eventType !== undefined && { eventType }),
    ...(source !== undefined && { source }),
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
    ...(handler !== undefined && { handler }),
    ...(search !== undefined && { search }),
    ...(wanted !== undefined && { state: wanted }),
  };
}

export function matchingHandlers(
  { deliveries }: StoredEvent,
  { handler, error }: Pick<DeliveryQuery, 'handler' | 'error'>,
  state: EventFilter['state'],
): string[] {
  return deliveries
    .filter((delivery) => handler === undefined || delivery.handler === handler)
    .filter((delivery) => state === undefined || delivery.state === state)
    .filter((delivery) => hasError(delivery, error))
    .map((delivery) => delivery.handler);
}

function hasError(delivery: StoredDelivery | undefined, error: string | undefined): boolean {
  if (error === undefined) return true;
  const lastError = delivery?.lastError ?? '';
  return lastError !== '' && errorGroup(lastError) === errorGroup(error);
}

function deliveryOf({ deliveries }: StoredEvent, handler: string): StoredDelivery | undefined {
  return deliveries.find((delivery) => delivery.handler === handler);
}

function count(selections: readonly DeliverySelection[]): number {
  return selections.reduce((sum, { handlers }) => sum + handlers.length, 0);
}

const MAX_GROUPS = 50;

/**
 * Matches what may differ between errors of one group: UUIDs, hexadecimal ids of 8 or more digits, numbers of 4 or more
 * digits, and shorter numbers that are not part of a name. The pattern does not match a number from 100 to 599, which
 * may be an HTTP status, unless the number is a duration in seconds or milliseconds.
 */
const NUMBERS = new RegExp(
  [
    /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/,
    /(?<![\da-z])(?=[a-f]*\d)[\da-f]{8,}(?![\da-z])/,
    /\d{4,}/,
    /(?<![\da-z_])(?![1-5]\d\d(?![\da-z]| m?s\b))\d+/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gi',
);

/** Deliveries to one handler that failed with the same error. Ids and numbers in the error may differ. */
export interface FailureGroup extends FailureCount {}

/** The failed deliveries, grouped by handler, state and error; see `PaymentInbox.failures()`. */
export interface Failures {
  /** At most 50 groups. The group with the most deliveries is first. */
  readonly groups: readonly FailureGroup[];
  /** Whether there are failed deliveries or groups that {@link groups} does not contain. */
  readonly more: boolean;
}

/**
 * Number of characters that are compared. The end of an error is not compared, because a store cuts long errors, and
 * two errors of one group can be cut at different places.
 */
const COMPARED = 300;
/** Number of errors that are grouped without a pause. After them, the event loop can run other work. */
const AT_ONCE = 500;

/** Returns the start of the error without its ids and numbers. Errors with the same result are one group. */
export function errorGroup(error: string): string {
  return error
    .slice(0, 2 * COMPARED)
    .replace(NUMBERS, '#')
    .slice(0, COMPARED);
}

export async function failureGroups(store: InboxStore): Promise<Failures> {
  const { counts, more } = await store.failures();
  const byGroup = new Map<string, FailureGroup>();
  for (const [index, one] of counts.entries()) {
    if (index % AT_ONCE === AT_ONCE - 1) await new Promise((resolve) => setImmediate(resolve));
    const key = JSON.stringify([one.handler, one.state, errorGroup(one.error)]);
    const known = byGroup.get(key);
    byGroup.set(key, known === undefined ? one : merged(known, one));
  }
  const groups = [...byGroup.values()].toSorted(
    (a, b) => b.count - a.count || +b.newestAt - +a.newestAt,
  );
  return { groups: groups.slice(0, MAX_GROUPS), more: more || groups.length > MAX_GROUPS };
}

function merged(a: FailureGroup, b: FailureGroup): FailureGroup {
  return {
    ...(a.newestAt >= b.newestAt ? a : b),
    count: a.count + b.count,
    oldestAt: a.oldestAt < b.oldestAt ? a.oldestAt : b.oldestAt,
  };
}
