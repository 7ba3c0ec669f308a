import { Inject, Injectable } from '@nestjs/common';
import type { ActivityMinute } from '../inbox/activity.minutes.js';
import type { PaymentInbox } from '../inbox/payment.inbox.js';
import type { InboxCapabilities, InboxStats } from '../inbox/inbox-store.js';
import { ConsoleInbox } from './console-inbox.js';

/** For how long an answer stands for the next, in milliseconds: many open consoles ask no more often than one. */
const FRESH_MS = 1000;

/** What the first page shows. */
export interface InboxOverview {
  /** When it was so, by this process's clock. */
  readonly now: Date;
  readonly capabilities: InboxCapabilities;
  /** Handlers of this process, and those something is stored or paused for; sorted. */
  readonly handlers: readonly string[];
  readonly stats: InboxStats;
  /** One entry a minute, the oldest first. */
  readonly activity: readonly ActivityMinute[];
}

/** What is the same however many minutes are shown. */
type InboxState = Omit<InboxOverview, 'activity'>;

/** Counts and activity, each asked for once a second at the most. */
@Injectable()
export class ConsoleOverview {
  /** Counts, and activity by its minutes; bounded by how many minutes may be asked for. */
  readonly #kept = new Map<string, { since: number; answer: Promise<unknown> }>();

  constructor(@Inject(ConsoleInbox) private readonly inbox: ConsoleInbox) {}

  /** @throws ConsoleRefusal 503 where the inbox is out of reach. */
  async show(minutes: number): Promise<InboxOverview> {
    const [state, activity] = await Promise.all([
      this.#fresh('state', (inbox) => this.#stateOf(inbox)),
      this.#fresh(`activity of ${minutes}`, (inbox) => inbox.activity(minutes)),
    ]);
    return { ...state, activity };
  }

  /** Something was done: the next answer is a new one. */
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
    const stats = await inbox.stats();
    return { now, capabilities: inbox.capabilities, handlers: handlersOf(inbox, stats), stats };
  }
}

/** Every handler an operator may name: those of this process, and those something is stored or paused for. */
export function handlersOf(inbox: PaymentInbox, { deliveries, paused }: InboxStats): string[] {
  const stored = deliveries.map(({ handler }) => handler);
  const names = new Set([...inbox.handlers(), ...stored, ...paused]);
  names.delete('*');
  return [...names].toSorted();
}
