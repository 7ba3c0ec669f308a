import { Inject, Injectable } from '@nestjs/common';
import type {
  ActivityCounts,
  PaymentEventSource,
  ExpectationCounts,
  Failures,
  InboxActivity,
  InboxCapabilities,
  InboxStats,
  PaymentInbox,
} from 'nestjs-payments';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';

/** How long counts are reused. Many open consoles then query the store no more often than one console does. */
const FRESH_MS = 1000;
/** How long the activity of closed minutes is reused, in milliseconds, because activity is expensive to compute. */
const ACTIVITY_FRESH_MS = 10_000;

/**
 * How long the failures and the newest events are reused, in milliseconds. Both queries are expensive: the query for
 * failures groups up to 10,000 failed deliveries, and the query for the newest event of a source may compare 20,000
 * events.
 */
const SEARCH_FRESH_MS = 4000;

/** Number of the newest webhook requests from which the usual gap is computed. */
const GAPS_FROM = 100;
/** Minimum number of gaps that are needed to compute the usual gap. */
const MIN_GAPS = 10;
/**
 * The next webhook request counts as late after this multiple of the usual gap, and at the earliest after
 * {@link MIN_LATE_MS}.
 */
const LATE_FACTOR = 3;
const MIN_LATE_MS = 60_000;

export interface ConsoleHandler {
  readonly name: string;
  /** Whether this process has registered the handler. */
  readonly here: boolean;
  /**
   * When a process that has registered the handler last ran; `null` if the store contains only deliveries or a pause of
   * the handler.
   */
  readonly lastSeenAt: Date | null;
  /**
   * Counts of the handler in all minutes of {@link InboxOverview.activity}. `p50Ms` and `p95Ms` are those of the
   * slowest minute.
   */
  readonly activity: ActivityCounts;
}

/** When the newest event of each source was received, by the store clock; `null` if none of the newest 20,000 events has the source. */
export interface NewestEvents {
  readonly webhook: Date | null;
  readonly poll: Date | null;
  readonly overdue: Date | null;
  /**
   * The usual time between two webhook requests: the 90th percentile of the recent gaps. `null` if there were too few
   * requests.
   */
  readonly usualGapMs: number | null;
  /** Whether the next webhook request is late compared with the usual gap, or no recent event came by webhook. */
  readonly late: boolean;
}

/** The activity of all handlers in one closed minute. */
export interface ConsoleMinute extends ActivityCounts {
  readonly startsAt: Date;
}

export interface InboxOverview {
  /** When the inbox was queried, by the process clock. */
  readonly now: Date;
  readonly capabilities: InboxCapabilities;
  /** Handlers of this process, of the catalog, and with stored deliveries or a pause, sorted by name. */
  readonly handlers: readonly ConsoleHandler[];
  readonly stats: InboxStats;
  /** How many expectations are open; `null` if the application has no option `reconcile`. */
  readonly expectations: ExpectationCounts | null;
  /** The newest events of each source; `null` if no event is stored. */
  readonly newest: NewestEvents | null;
  /** Closed minutes, the oldest first. */
  readonly activity: readonly ConsoleMinute[];
  /** Start of the first complete minute; see `InboxActivity.completeFrom`. */
  readonly completeFrom: Date;
}

/** The part of the overview that does not depend on the number of minutes. */
type InboxState = Omit<InboxOverview, 'activity' | 'completeFrom' | 'handlers' | 'newest'> & {
  readonly handlers: readonly Omit<ConsoleHandler, 'activity'>[];
};

@Injectable()
export class ConsoleOverview {
  /** By query. There is one entry of activity per number of minutes (1 to 1,440), so the size is bounded. */
  readonly #cache = new Map<string, { until: number; result: Promise<unknown> }>();

  constructor(
    private readonly inbox: ConsoleInbox,
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
  ) {}

  /** @throws ConsoleException 503 if the inbox is not reachable. */
  async show(minutes: number): Promise<InboxOverview> {
    const [state, newest, { byHandler, ...activity }] = await Promise.all([
      this.#cached('state', FRESH_MS, (inbox) => this.#stateOf(inbox)),
      this.#cached('newest', SEARCH_FRESH_MS, (inbox) => this.#newestOf(inbox)),
      this.#cached(`activity of ${minutes}`, ACTIVITY_FRESH_MS, async (inbox) =>
        summaryOf(await inbox.activity(minutes)),
      ),
    ]);
    const handlers = state.handlers.map((handler) => ({
      ...handler,
      activity: byHandler.get(handler.name) ?? NO_ACTIVITY,
    }));
    return { ...state, handlers, newest, ...activity };
  }

  /** The failed deliveries, grouped by handler and error. @throws ConsoleException 503 if the inbox is not reachable. */
  failures(): Promise<Failures> {
    return this.#cached('failures', SEARCH_FRESH_MS, (inbox) => inbox.failures());
  }

  /** Makes the next {@link show} and {@link failures} query the inbox. Call this method after an action. */
  invalidate(): void {
    this.#cache.clear();
  }

  /** Returns the cached result or the result of a new query. Each key belongs to one query. */
  #cached<T>(key: string, freshMs: number, query: (inbox: PaymentInbox) => Promise<T>): Promise<T> {
    const now = this.options.runtime.monotonic();
    for (const [old, { until }] of this.#cache) if (now >= until) this.#cache.delete(old);
    const entry = this.#cache.get(key);
    if (entry !== undefined) return entry.result as Promise<T>;
    const result = this.inbox.call(query);
    const added = { until: now + freshMs, result };
    this.#cache.set(key, added);
    // A failed query is repeated after a second.
    result.catch(() => (added.until = now + FRESH_MS));
    return result;
  }

  async #stateOf(inbox: PaymentInbox): Promise<InboxState> {
    const now = new Date(this.options.runtime.now());
    const [stats, expectations] = await Promise.all([
      inbox.stats(),
      this.inbox.expectations?.counts() ?? null,
    ]);
    return {
      now,
      capabilities: inbox.capabilities,
      handlers: await handlersOf(inbox, stats),
      stats,
      expectations,
    };
  }

  async #newestOf(inbox: PaymentInbox): Promise<NewestEvents | null> {
    const now = this.options.runtime.now();
    const timesOf = async (source: PaymentEventSource, limit = 1): Promise<Date[]> =>
      (await inbox.list({ source, limit })).events.map(({ receivedAt }) => receivedAt);
    const hasPolls = this.inbox.expectations !== null;
    const [webhooks, [poll = null], [overdue = null]] = await Promise.all([
      timesOf('webhook', GAPS_FROM),
      hasPolls ? timesOf('poll') : [],
      hasPolls ? timesOf('overdue') : [],
    ]);
    const [webhook = null] = webhooks;
    if ((webhook ?? poll ?? overdue) === null) return null;
    const usualGapMs = usualGapOf(webhooks);
    const lateAfterMs = Math.max(MIN_LATE_MS, LATE_FACTOR * (usualGapMs ?? Infinity));
    const late = webhook === null || now - +webhook > lateAfterMs;
    return { webhook, poll, overdue, usualGapMs, late };
  }
}

/** `times` are sorted newest first. Returns the 90th percentile of their gaps; `null` if there are too few. */
function usualGapOf(times: readonly Date[]): number | null {
  const gaps = times
    .slice(1)
    .map((time, index) => +times[index]! - +time)
    .toSorted((a, b) => a - b);
  return gaps.length < MIN_GAPS ? null : gaps[Math.floor(gaps.length * 0.9)]!;
}

/** All handlers that an operator can select, sorted by name. */
export async function handlersOf(
  inbox: PaymentInbox,
  { deliveries, paused }: InboxStats,
): Promise<Omit<ConsoleHandler, 'activity'>[]> {
  const known = new Map<string, Omit<ConsoleHandler, 'activity'>>();
  for (const name of [...deliveries.map(({ handler }) => handler), ...paused]) {
    if (name !== '*') known.set(name, { name, here: false, lastSeenAt: null });
  }
  for (const { name, here, lastSeenAt } of await inbox.handlers()) {
    known.set(name, { name, here, lastSeenAt });
  }
  return [...known.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const NO_ACTIVITY: ActivityCounts = Object.freeze({
  received: 0,
  done: 0,
  failed: 0,
  dead: 0,
  p50Ms: null,
  p95Ms: null,
});

function summaryOf({ minutes, completeFrom }: InboxActivity): Pick<
  InboxOverview,
  'activity' | 'completeFrom'
> & {
  byHandler: Map<string, ActivityCounts>;
} {
  const byHandler = new Map<string, ActivityCounts>();
  for (const { handlers } of minutes) {
    for (const [name, counts] of Object.entries(handlers)) {
      const sum = byHandler.get(name) ?? NO_ACTIVITY;
      byHandler.set(name, {
        received: sum.received + counts.received,
        done: sum.done + counts.done,
        failed: sum.failed + counts.failed,
        dead: sum.dead + counts.dead,
        p50Ms: slower(sum.p50Ms, counts.p50Ms),
        p95Ms: slower(sum.p95Ms, counts.p95Ms),
      });
    }
  }
  const activity = minutes.map(({ startsAt, total }) => ({ startsAt, ...total }));
  return { activity, completeFrom, byHandler };
}

function slower(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
