import { Inject, Injectable } from '@nestjs/common';
import { NO_OBSERVERS, Observers } from '../../telemetry/observers.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import type {
  DeliverySelection,
  EventFilter,
  EventState,
  InboxStore,
  StoredDelivery,
  StoredEvent,
} from '../store/inbox-store.js';
import { assertTimes } from '../store/stored-event.js';
import { errorGroup } from './failure-groups.js';

/**
 * Number of events per call to the store. This number is small, so that no call delays the receipt of a new event for
 * long.
 */
export const PAGE = 100;
const DEFAULT_STATE = 'dead';

/**
 * Selects the deliveries that `PaymentInbox.skip()` skips. The deliveries are in `state`, and their events match the
 * other fields.
 */
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

/** Selects the deliveries that `PaymentInbox.redrive()` and `PaymentInbox.startRedrive()` run again. */
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
}

/** The result of a redrive or a skip. */
export interface SelectionResult {
  /** Number of matching events with at least one delivery to change. */
  readonly events: number;
  /**
   * Number of deliveries that changed. In a dry run: the number that would change. A later real run changes fewer
   * deliveries if the inbox has pruned some of the events in the meantime.
   */
  readonly deliveries: number;
}

/** A redrive whose query was checked. */
export interface RedrivePlan {
  readonly query: RedriveQuery;
  /** See `InboxStore.redrive`. */
  readonly unchangedSince: Date | undefined;
  readonly filter: EventFilter;
  /** The handlers of an event whose deliveries run again. */
  readonly handlersOf: (event: StoredEvent) => readonly string[];
  /** The only handler that the query names; `null` if it names none, or several. */
  readonly handler: string | null;
}

/** A page of events whose selected deliveries were redriven, skipped or counted. */
export interface SelectedPage extends SelectionResult {
  readonly selected: readonly {
    readonly event: StoredEvent;
    readonly handlers: readonly string[];
  }[];
  /** The cursor of the next page; `null` if this page is the last. */
  readonly next: string | null;
}

@Injectable()
export class InboxRedrive {
  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    private readonly catalog: HandlerCatalogCache,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {}

  async redrive(query: RedriveQuery): Promise<SelectionResult> {
    const plan = await this.plan(query);
    const result = { events: 0, deliveries: 0 };
    try {
      return await readAll(result, (after) => this.page(plan, after, PAGE, 0));
    } finally {
      // If a later page failed, the deliveries of the earlier pages have changed, so they are reported.
      this.report(plan, result);
    }
  }

  /**
   * Checks a query. Even with `force`, a delivery does not run again if one of its attempts started after
   * `unchangedSince`, or if the delivery became done, dead or skipped after this time.
   *
   * @throws TypeError for a handler that no process has registered, or an invalid time.
   */
  async plan(query: RedriveQuery, unchangedSince?: Date): Promise<RedrivePlan> {
    const { state, ids, force = false } = query;
    await this.catalog.refresh();
    const hasNoDeliveries = state === 'unhandled' || state === 'stale';
    const known = this.catalog.names();
    const { handlers = hasNoDeliveries ? known : undefined } = query;
    const unknown = handlers?.find((name) => !known.includes(name));
    if (unknown !== undefined) throw unknownHandler(unknown, known);
    const filter = filterOf(query, handlers === undefined && !force ? DEFAULT_STATE : undefined);
    const handlersOf = (event: StoredEvent): readonly string[] => {
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
        const current = deliveryOf(event, name)?.state;
        return current !== 'running' && (force || current !== 'done');
      });
    };
    const [first, ...others] = handlers ?? [query.handler];
    const isKnown = first !== undefined && known.includes(first);
    const handler = isKnown && others.length === 0 ? first : null;
    return { query, unchangedSince, filter, handlersOf, handler };
  }

  /**
   * Redrives the matching events after a cursor, or only counts them if the query is a dry run. The events become due
   * one after the other, `spacingMs` apart.
   */
  page(
    { query: { force = false, dryRun }, unchangedSince, filter, handlersOf }: RedrivePlan,
    after: string | null,
    limit: number,
    spacingMs: number,
  ): Promise<SelectedPage> {
    const fulfils = this.catalog.polledTypes;
    return this.#page(filter, handlersOf, after, limit, async (selections) => {
      if (dryRun) return count(selections);
      const dueInMs = selections.map((_one, index) => Math.round(index * spacingMs));
      return this.store.redrive(selections, { force, dueInMs, fulfils, unchangedSince });
    });
  }

  report({ query, handler }: RedrivePlan, result: SelectionResult): void {
    if (!this.observers.active || query.dryRun || result.deliveries === 0) return;
    const { company = null } = query;
    const { events, deliveries } = result;
    this.observers.notify('deliveriesRedriven', { company, handler, events, deliveries });
  }

  async skip(query: DeliveryQuery): Promise<SelectionResult> {
    return this.#skip(query, async (selections) =>
      query.dryRun ? count(selections) : this.store.skip(selections),
    );
  }

  /**
   * Skips the pending and dead deliveries of a handler that was removed from the catalog. Stops if a process registers
   * the handler again. Returns how many deliveries it skipped.
   */
  async skipRemoved(handler: string): Promise<number> {
    const skip = async (selections: readonly DeliverySelection[]): Promise<number> => {
      // The catalog is read after the page. If a process has registered the handler again since the first page, the
      // other events are not skipped.
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
    const handlersOf = (event: StoredEvent) =>
      isSkippable ? matchingHandlers(event, query, state) : [];
    const filter = filterOf(query, state);
    return readAll({ events: 0, deliveries: 0 }, (after) =>
      this.#page(filter, handlersOf, after, PAGE, skip),
    );
  }

  /** Reads a page in the order of receipt. Changes to deliveries do not affect this order, so no event is left out. */
  async #page(
    filter: EventFilter,
    handlersOf: RedrivePlan['handlersOf'],
    after: string | null,
    limit: number,
    act: (selections: readonly DeliverySelection[]) => Promise<number>,
  ): Promise<SelectedPage> {
    const page = await this.store.list({ filter, order: 'oldest', limit, after });
    const selected = page.events
      .map((event) => ({ event, handlers: handlersOf(event) }))
      .filter(({ handlers }) => handlers.length > 0);
    const selections = selected.map(({ event, handlers }) => ({
      company: event.company,
      id: event.id,
      handlers,
    }));
    const deliveries = selections.length === 0 ? 0 : await act(selections);
    return { selected, events: selected.length, deliveries, next: page.next };
  }
}

async function readAll(
  result: { events: number; deliveries: number },
  read: (after: string | null) => Promise<SelectedPage>,
): Promise<SelectionResult> {
  let after: string | null = null;
  do {
    const page = await read(after);
    result.events += page.events;
    result.deliveries += page.deliveries;
    after = page.next;
  } while (after !== null);
  return result;
}

export function unknownHandler(name: string, known: readonly string[]): TypeError {
  const names = known.toSorted().join(', ') || 'none';
  return new TypeError(`No handler is named "${name}". Known handlers: ${names}.`);
}

export function filterOf(query: RedriveQuery, state?: EventFilter['state']): EventFilter {
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
