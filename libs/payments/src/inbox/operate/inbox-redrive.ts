import type { Observers } from '../../telemetry/observers.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type {
  DeliverySelection,
  DeliveryState,
  EventFilter,
  EventState,
  InboxStore,
  StoredDelivery,
  StoredEvent,
} from '../store/inbox-store.js';
import { assertTimes } from '../store/stored-event.js';
import { errorGroup } from './failure-groups.js';

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
    const { handlers = hasNoDeliveries ? this.catalog.names() : undefined } = query;
    this.#checkHandlers(handlers);
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
      return wanted.filter((name) => isRedrivable(stateOf(event, name), force));
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
        const isKnown = first !== undefined && this.catalog.names().includes(first);
        const handler = isKnown && others.length === 0 ? first : null;
        const { company = null } = query;
        this.observers.notify('deliveriesRedriven', { company, handler, ...result });
      }
    }
  }

  async skip(query: DeliveryQuery): Promise<SelectionResult> {
    const state = query.state ?? DEFAULT_STATE;
    const handlersToSkip = (event: StoredEvent) =>
      matchingHandlers(event, query, state).filter((name) => isSkippable(stateOf(event, name)));
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

  #checkHandlers(handlers: readonly string[] | undefined): void {
    const known = this.catalog.names();
    const unknown = handlers?.find((name) => !known.includes(name));
    if (unknown !== undefined) throw unknownHandler(unknown, known);
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

function stateOf(event: StoredEvent, handler: string): DeliveryState | undefined {
  return deliveryOf(event, handler)?.state;
}

/** Whether a redrive changes a delivery in this state. The store checks the state again. */
function isRedrivable(state: DeliveryState | undefined, force: boolean): boolean {
  return state !== 'running' && (state !== 'done' || force);
}

function isSkippable(state: DeliveryState | undefined): boolean {
  return state === 'pending' || state === 'dead';
}

function count(selections: readonly DeliverySelection[]): number {
  return selections.reduce((sum, { handlers }) => sum + handlers.length, 0);
}
