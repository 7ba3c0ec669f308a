import { Inject, Injectable } from '@nestjs/common';
import type {
  ActivityCounts,
  ExpectationCounts,
  Failures,
  InboxActivity,
  InboxCapabilities,
  InboxProcess,
  InboxStats,
  ListQuery,
  PaymentInbox,
  RangeCounts,
  RedriveJob,
} from 'nestjs-payments';
import { ConsoleInbox } from './console-inbox.js';
import { CONSOLE_OPTIONS } from './console-options.js';
import type { ResolvedConsoleOptions } from './console-options.js';
import { arrivalsOf } from './console-process-reports.js';
import type { ConsoleArrivals, NewestEvents } from './console-process-reports.js';

/**
 * How long counts are reused, in milliseconds. Therefore many open pages query the store no more often than one page
 * does.
 */
const FRESH_MS = 1000;
/**
 * Activity is expensive to compute, so a result is reused for a time: 400 times as long as its computation took, and
 * within these bounds in milliseconds.
 */
const ACTIVITY_FRESH_MS = 10_000;
const ACTIVITY_MAX_FRESH_MS = 300_000;
const ACTIVITY_FRESH_FACTOR = 400;

/**
 * How long the failures and the newest events are reused, in milliseconds. Both queries are expensive: the query for
 * failures groups up to 10,000 deliveries that failed, and the query for the newest event of a source may compare
 * 20,000 events.
 */
const SEARCH_FRESH_MS = 4000;

/** How long the console shows a redrive after the redrive has ended, in milliseconds. */
const SHOW_ENDED_MS = 3_600_000;

const MINUTE_MS = 60_000;
/** Number of events that one query reads to compute the usual gap between webhook requests. */
const GAPS_FROM = 100;
/** Minimum number of minutes with webhook requests that are needed to compute the usual gap between requests. */
const MIN_MINUTES = 11;

export interface ConsoleHandler {
  readonly name: string;
  /** Whether this process has registered the handler. */
  readonly here: boolean;
  /**
   * When a process that has registered the handler last ran; `null` if no process has registered the handler, and the
   * store contains only deliveries or a pause of it.
   */
  readonly lastSeenAt: Date | null;
  /** Counts of the handler's deliveries, for the events that {@link InboxOverview.range} counts. */
  readonly activity: RangeCounts;
}

/** The activity of all handlers in one minute that has ended. */
export interface ConsoleMinute extends ActivityCounts {
  readonly startsAt: Date;
}

export interface InboxOverview {
  /** When the console queried the inbox, by the clock of the process. */
  readonly now: Date;
  readonly capabilities: InboxCapabilities;
  /**
   * The handlers that a process has registered, or of which the store contains deliveries or a pause. Sorted by name.
   */
  readonly handlers: readonly ConsoleHandler[];
  readonly stats: InboxStats;
  /** How many expectations are open; `null` if the option `reconcile` is not set. */
  readonly expectations: ExpectationCounts | null;
  readonly arrivals: ConsoleArrivals;
  /** The activity in each minute that has ended, with the oldest minute first. */
  readonly activity: readonly ConsoleMinute[];
  /**
   * Counts of the events that were received since the first minute of `activity`, by source, and counts of the
   * deliveries of these events.
   */
  readonly range: Pick<InboxActivity, 'events' | 'deliveries'> & {
    /** When these events, their deliveries and the minutes were counted, by the process clock. */
    readonly countedAt: Date;
  };
  /** Start of the first complete minute; see `InboxActivity.completeFrom`. */
  readonly completeFrom: Date;
}

/** The part of the overview that does not depend on the number of minutes. */
type InboxState = Omit<
  InboxOverview,
  'activity' | 'completeFrom' | 'handlers' | 'range' | 'arrivals'
> & {
  readonly handlers: readonly Omit<ConsoleHandler, 'activity'>[];
};

@Injectable()
export class ConsoleOverview {
  /**
   * The results of queries, by the name of the query. The size is bounded, because there is one entry of activity per
   * number of minutes (1 to 1,440).
   */
  readonly #cache = new Map<string, { until: number; result: Promise<unknown> }>();

  constructor(
    private readonly inbox: ConsoleInbox,
    @Inject(CONSOLE_OPTIONS) private readonly options: ResolvedConsoleOptions,
  ) {}

  /** @throws ConsoleException 503 if the inbox is not reachable. */
  async show(minutes: number): Promise<InboxOverview> {
    const [state, newest, processes, activity] = await Promise.all([
      this.#cached('state', FRESH_MS, (inbox) => this.#stateOf(inbox)),
      this.#cached('newest', SEARCH_FRESH_MS, (inbox) => this.#newestOf(inbox)),
      this.processes(),
      this.#cached(
        `activity of ${minutes}`,
        ACTIVITY_FRESH_MS,
        async (inbox) => ({
          countedAt: new Date(this.options.runtime.now()),
          ...(await inbox.activity(minutes)),
        }),
        ACTIVITY_MAX_FRESH_MS,
      ),
    ]);
    const handlers = state.handlers.map((handler) => ({
      ...handler,
      activity: activity.handlers[handler.name] ?? NO_DELIVERIES,
    }));
    return {
      ...state,
      handlers,
      arrivals: arrivalsOf(processes, newest, this.options.runtime.now()),
      activity: activity.minutes.map(({ startsAt, total }) => ({ startsAt, ...total })),
      range: {
        events: activity.events,
        deliveries: activity.deliveries,
        countedAt: activity.countedAt,
      },
      completeFrom: activity.completeFrom,
    };
  }

  /**
   * Returns the processes that ran within the last hour. @throws ConsoleException 503 if the inbox is not reachable.
   */
  processes(): Promise<InboxProcess[]> {
    return this.#cached('processes', FRESH_MS, (inbox) => inbox.processes());
  }

  /**
   * Returns the deliveries that are pending, running or dead and have at least one failed attempt, grouped by handler,
   * state and error.
   *
   * @throws ConsoleException 503 if the inbox is not reachable.
   */
  failures(): Promise<Failures> {
    return this.#cached('failures', SEARCH_FRESH_MS, (inbox) => inbox.failures());
  }

  /**
   * Returns the redrives that are running, or that have ended within the last hour.
   *
   * @throws ConsoleException 503 if the inbox is not reachable.
   */
  async redrives(): Promise<RedriveJob[]> {
    const jobs = await this.#cached('redrives', FRESH_MS, (inbox) => inbox.redriveJobs());
    const since = this.options.runtime.now() - SHOW_ENDED_MS;
    return jobs.filter(({ state, changedAt }) => state === 'running' || +changedAt >= since);
  }

  /**
   * Removes all cached results, so that the next call of each method queries the inbox. Call this method after an
   * action.
   */
  invalidate(): void {
    this.#cache.clear();
  }

  /** Returns the cached result or the result of a new query. Each key belongs to one query. */
  #cached<T>(
    key: string,
    freshMs: number,
    query: (inbox: PaymentInbox) => Promise<T>,
    maxFreshMs = freshMs,
  ): Promise<T> {
    const now = this.options.runtime.monotonic();
    for (const [old, { until }] of this.#cache) if (now >= until) this.#cache.delete(old);
    const entry = this.#cache.get(key);
    if (entry !== undefined) return entry.result as Promise<T>;
    const result = this.inbox.call(query);
    const added = { until: now + freshMs, result };
    this.#cache.set(key, added);
    result.then(
      () => {
        const tookMs = this.options.runtime.monotonic() - now;
        added.until = now + Math.min(Math.max(freshMs, ACTIVITY_FRESH_FACTOR * tookMs), maxFreshMs);
      },
      // The error of a failed query is reused for a second.
      () => (added.until = now + FRESH_MS),
    );
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

  async #newestOf(inbox: PaymentInbox): Promise<NewestEvents> {
    const hasPolls = this.inbox.expectations !== null;
    const [webhooks, [poll = null], [overdue = null]] = await Promise.all([
      webhooksOf(inbox),
      hasPolls ? timesOf(inbox, { source: 'poll', limit: 1 }) : [],
      hasPolls ? timesOf(inbox, { source: 'overdue', limit: 1 }) : [],
    ]);
    return { ...webhooks, poll, overdue };
  }
}

async function timesOf(inbox: PaymentInbox, query: ListQuery): Promise<Date[]> {
  return (await inbox.list(query)).events.map(({ receivedAt }) => receivedAt);
}

/**
 * Returns when the newest webhook request was received, and the usual gap: the 90th percentile of the times between
 * minutes with webhook requests, or `null` if there are too few such minutes. All requests of one minute count as one.
 * Otherwise, the usual gap after a burst of requests would be milliseconds.
 */
async function webhooksOf(
  inbox: PaymentInbox,
): Promise<Pick<NewestEvents, 'webhook' | 'usualGapMs'>> {
  let times = await timesOf(inbox, { source: 'webhook', limit: GAPS_FROM });
  const [webhook = null] = times;
  const found = new Set<number>();
  while (times.length > 0) {
    for (const time of times) found.add(Math.floor(+time / MINUTE_MS));
    if (found.size >= MIN_MINUTES) break;
    const to = new Date(Math.floor(+times.at(-1)! / MINUTE_MS) * MINUTE_MS);
    times = await timesOf(inbox, { source: 'webhook', limit: GAPS_FROM, to });
  }
  const minutes = [...found];
  const gaps = minutes
    .slice(1)
    .map((minute, index) => minutes[index]! - minute)
    .toSorted((a, b) => a - b);
  const usualGapMs =
    minutes.length < MIN_MINUTES ? null : MINUTE_MS * gaps[Math.floor(gaps.length * 0.9)]!;
  return { webhook, usualGapMs };
}

/** Returns all handlers that an operator can select, sorted by name. */
export async function handlersOf(
  inbox: PaymentInbox,
  { deliveries, paused }: InboxStats,
): Promise<Omit<ConsoleHandler, 'activity'>[]> {
  const known = new Map<string, Omit<ConsoleHandler, 'activity'>>();
  for (const name of [...deliveries, ...paused].map(({ handler }) => handler)) {
    if (name !== '*') known.set(name, { name, here: false, lastSeenAt: null });
  }
  for (const { name, here, lastSeenAt } of await inbox.handlers()) {
    known.set(name, { name, here, lastSeenAt });
  }
  return [...known.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

const NO_DELIVERIES: RangeCounts = Object.freeze({
  pending: 0,
  running: 0,
  done: 0,
  dead: 0,
  skipped: 0,
  failed: 0,
  p50Ms: null,
  p95Ms: null,
});
