import { Inject, Injectable } from '@nestjs/common';
import type { ActivityMinute } from '../inbox/activity.minutes.js';
import type { PaymentInbox } from '../inbox/payment.inbox.js';
import type { InboxCapabilities, InboxStats } from '../inbox/store.contract.js';
import { ConsoleInbox } from './console.inbox.js';

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

/** Counts and activity, asked for once a second at the most. */
@Injectable()
export class ConsoleOverview {
  /** By minutes of activity; bounded by how many minutes may be asked for. */
  readonly #kept = new Map<number, { since: number; overview: Promise<InboxOverview> }>();

  constructor(@Inject(ConsoleInbox) private readonly inbox: ConsoleInbox) {}

  /** @throws ConsoleRefusal 503 where the inbox is out of reach. */
  async show(minutes: number): Promise<InboxOverview> {
    const since = this.inbox.runtime.monotonic();
    for (const [key, kept] of this.#kept) {
      if (since - kept.since >= FRESH_MS) this.#kept.delete(key);
    }
    let kept = this.#kept.get(minutes);
    if (kept === undefined) {
      kept = { since, overview: this.inbox.ask((inbox) => this.#ask(inbox, minutes)) };
      this.#kept.set(minutes, kept);
    }
    return kept.overview;
  }

  /** Something was done: the next answer is a new one. */
  forget(): void {
    this.#kept.clear();
  }

  async #ask(inbox: PaymentInbox, minutes: number): Promise<InboxOverview> {
    const now = new Date(this.inbox.runtime.now());
    const [stats, activity] = await Promise.all([inbox.stats(), inbox.activity(minutes)]);
    const handlers = handlersOf(inbox, stats);
    return { now, capabilities: inbox.capabilities, handlers, stats, activity };
  }
}

/** Every handler an operator may name: those of this process, and those something is stored or paused for. */
export function handlersOf(inbox: PaymentInbox, { deliveries, paused }: InboxStats): string[] {
  const stored = deliveries.map(({ handler }) => handler);
  const names = new Set([...inbox.handlers(), ...stored, ...paused]);
  names.delete('*');
  return [...names].toSorted();
}
