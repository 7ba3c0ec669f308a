import { Inject, Injectable } from '@nestjs/common';
import type {
  ActivityCounts,
  ActivityMinute,
  InboxCapabilities,
  InboxStats,
} from '../inbox/inbox-store.js';
import type { PaymentInbox } from '../inbox/payment-inbox.js';
import { ConsoleInbox } from './console-inbox.js';

/** For how long an answer is reused, in milliseconds: many open consoles query the store as often as one. */
const FRESH_MS = 1000;

/** A handler that an operator may name. */
export interface ConsoleHandler {
  readonly name: string;
  /** Whether this process has it. */
  readonly here: boolean;
  /** When a live worker last had it; `null` if the database knows only its deliveries. */
  readonly lastSeenAt: Date | null;
  /**
   * What it did in the minutes of {@link InboxOverview.activity}, `p50Ms` and `p95Ms` of the slowest minute; `null` if
   * there are no such minutes yet.
   */
  readonly activity: ActivityCounts | null;
}

/** One closed minute, all handlers together. */
export interface ConsoleMinute extends ActivityCounts {
  readonly startsAt: Date;
}

/** What the first page shows. */
export interface InboxOverview {
  /** When it was so, by this process's clock. */
  readonly now: Date;
  readonly capabilities: InboxCapabilities;
  /** Handlers of this process, those of the catalog, and those with stored deliveries or a pause; by name. */
  readonly handlers: readonly ConsoleHandler[];
  readonly stats: InboxStats;
  /** When the newest event was received, by the store's clock; `null` if none is stored. */
  readonly lastReceivedAt: Date | null;
  /** Closed minutes, the oldest first; empty until the first one is written. */
  readonly activity: readonly ConsoleMinute[];
}

/** What is the same however many minutes are shown. */
type InboxState = Omit<InboxOverview, 'activity' | 'handlers'> & {
  readonly handlers: readonly Omit<ConsoleHandler, 'activity'>[];
};

/** Counts and activity, each queried at most once a second. */
@Injectable()
export class ConsoleOverview {
  /** Counts, and activity by its minutes; bounded by how many minutes may be asked for. */
  readonly #kept = new Map<string, { since: number; answer: Promise<unknown> }>();

  constructor(@Inject(ConsoleInbox) private readonly inbox: ConsoleInbox) {}

  /** @throws ConsoleRefusal 503 if the inbox is not reachable. */
  async show(minutes: number): Promise<InboxOverview> {
    const [state, { activity, byHandler }] = await Promise.all([
      this.#fresh('state', (inbox) => this.#stateOf(inbox)),
      this.#fresh(`activity of ${minutes}`, async (inbox) =>
        summaryOf(await inbox.activity(minutes)),
      ),
    ]);
    const handlers = state.handlers.map((handler) => ({
      ...handler,
      activity: activity.length === 0 ? null : (byHandler.get(handler.name) ?? NO_ACTIVITY),
    }));
    return { ...state, handlers, activity };
  }

  /** Call it after an action: the next answer is a new one. */
  forget(): void {
    this.#kept.clear();
  }

  /** The answer there is, or a new one. A key stands for one question. */
  #fresh<T>(key: string, question: (inbox: PaymentInbox) => Promise<T>): Promise<T> {
    const since = this.inbox.runtime.monotonic();
    for (const [old, kept] of this.#kept) {
      if (since - kept.since >= FRESH_MS) this.#kept.delete(old);
    }
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept.answer as Promise<T>;
    const answer = this.inbox.ask(question);
    this.#kept.set(key, { since, answer });
    return answer;
  }

  async #stateOf(inbox: PaymentInbox): Promise<InboxState> {
    const now = new Date(this.inbox.runtime.now());
    const [stats, newest] = await Promise.all([inbox.stats(), inbox.list({ limit: 1 })]);
    return {
      now,
      capabilities: inbox.capabilities,
      handlers: await handlersOf(inbox, stats),
      stats,
      lastReceivedAt: newest.events[0]?.receivedAt ?? null,
    };
  }
}

/** Every handler that an operator may name, by name. */
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

function summaryOf(minutes: readonly ActivityMinute[]): {
  activity: ConsoleMinute[];
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
  return { activity: minutes.map(({ startsAt, total }) => ({ startsAt, ...total })), byHandler };
}

function slower(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : Math.max(a, b);
}
