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

/** Events per call of the store: few enough that a receive never waits long for the call. */
const PAGE = 100;
/** Default of `ratePerSecond`. */
const DEFAULT_RATE = 100;
/** Default of `state`. */
const DEFAULT_STATE = 'dead';

/** Which deliveries `PaymentInbox.skip()` skips: the deliveries in `state` of the matching events. */
export interface DeliveryQuery extends EventFilter {
  /** Default `dead`. With `unhandled` or `stale`, nothing is skipped, because these events have no deliveries. */
  readonly state?: EventState;
  /** Only deliveries whose last error is in the same group as this error; see `PaymentInbox.failures()`. */
  readonly error?: string;
  /** Counts, and changes nothing. Default `false`. */
  readonly dryRun?: boolean;
}

/** Which deliveries `PaymentInbox.redrive()` runs again, and how. */
export interface RedriveQuery extends DeliveryQuery {
  /**
   * Runs these handlers on the matching events, in any state. Adds a delivery if an event has none to a handler, for
   * example because the handler was added later; with `error`, it adds none. Each handler must be known (see
   * `PaymentInbox.handlers()`), and runs only on events whose type it takes. `state` then has no default. A stale event
   * without deliveries is ignored, unless `state` is `stale` or `ids` contains it. With the state `unhandled` or
   * `stale`, the default is every known handler.
   */
  readonly handlers?: readonly string[];
  /** Runs done deliveries again too. Default `false`. */
  readonly force?: boolean;
  /** How many events become due per second: more than 0; `Infinity` for all at once. Default 100. */
  readonly ratePerSecond?: number;
}

/** The result of a redrive or a skip. */
export interface SelectionResult {
  /** Matching events with a delivery to change. */
  readonly events: number;
  /** Deliveries that changed. In a dry run: deliveries that would change, if no body was pruned meanwhile. */
  readonly deliveries: number;
}

/** Redrives or skips deliveries, page by page. */
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
      // A stale event may be a replay, so it runs only if the query names it.
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
      // Also if a later page fails: its earlier pages are changed.
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
    const state = query.state ?? DEFAULT_STATE;
    const isSkippable = state === 'pending' || state === 'dead';
    const handlersToSkip = (event: StoredEvent) =>
      isSkippable ? matchingHandlers(event, query, state) : [];
    const result = { events: 0, deliveries: 0 };
    return this.#each(filterOf(query, state), handlersToSkip, result, async (selections) =>
      query.dryRun ? count(selections) : this.store.skip(selections),
    );
  }

  /**
   * Pages through the matching events, oldest first, and adds each page to `result`. The cursor is a number of receipt,
   * so that changes hide no event.
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

/** The error for the name of a handler that neither this process nor another has registered. */
export function unknownHandler(name: string, known: readonly string[]): TypeError {
  const names = known.toSorted().join(', ') || 'none';
  return new TypeError(`No handler is named "${name}". There are: ${names}.`);
}

/** @throws TypeError for an invalid time. */
function filterOf(query: RedriveQuery, state: EventFilter['state']): EventFilter {
  assertTimes(query);
  // Field by field: the fields may be getters, which a spread does not copy, and without a field more events match.
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

/** The handlers of the deliveries of an event that match the query. */
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

/** Whether the last error of a delivery has the {@link errorGroup} of `error`. Without `error`, each delivery matches. */
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

/** How many groups {@link failureGroups} returns at most: those with the most deliveries. */
const MAX_GROUPS = 50;

/**
 * What may differ between errors of one group: UUIDs, hexadecimal ids of 8 or more digits, numbers of 4 or more digits, and
 * shorter numbers that are no part of a name. A number from 100 to 599 is kept, because it may be an HTTP status, unless
 * it counts seconds or milliseconds.
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

/** Deliveries to one handler that failed with the same error, apart from ids and numbers in its text. */
export interface FailureGroup extends FailureCount {}

/** The failed deliveries by handler and error; see `PaymentInbox.failures()`. */
export interface Failures {
  /** The group with the most deliveries first. At most 50. */
  readonly groups: readonly FailureGroup[];
  /** Whether there are other failed deliveries or groups. */
  readonly more: boolean;
}

/** How many characters of an error without its numbers decide its group. Stores cut errors, so two long ones may end at different places. */
const COMPARED = 300;
/** How many errors are grouped before other work of the process gets a turn. */
const AT_ONCE = 500;

/** The start of the error without its ids and numbers. Errors with the same result are one group. */
export function errorGroup(error: string): string {
  return error
    .slice(0, 2 * COMPARED)
    .replace(NUMBERS, '#')
    .slice(0, COMPARED);
}

/** Counts failed deliveries in groups. */
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
