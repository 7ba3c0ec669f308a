import type { ActivityCounts, ActivityMinute } from '../inbox-store.js';
import type { EventRow } from './memory-rows.js';

const MINUTE_MS = 60_000;
const KEPT_MINUTES = 1440;
/** How long after its end a minute is closed. */
const CLOSING_MS = 10_000;

interface Tally {
  received: number;
  failed: number;
  dead: number;
  readonly tookMs: number[];
}

/** The activity of the closed minutes of a memory store. */
export class MemoryActivity {
  readonly #minutes = new Map<number, ActivityMinute>();
  /** End of the last minute that was written. */
  #end = -Infinity;

  summarize(rows: Iterable<EventRow>, now: number): void {
    const end = Math.floor((now - CLOSING_MS) / MINUTE_MS) * MINUTE_MS;
    const start = Math.max(this.#end, end - KEPT_MINUTES * MINUTE_MS);
    const tallies = new Map<number, Map<string | null, Tally>>();
    for (let minute = start; minute < end; minute += MINUTE_MS) tallies.set(minute, new Map());
    // Counts for all handlers together, under `null`, and for one handler.
    const count = (at: Date, handlers: readonly (string | null)[], add: (to: Tally) => void) => {
      const minute = tallies.get(Math.floor(at.getTime() / MINUTE_MS) * MINUTE_MS);
      for (const handler of minute ? handlers : []) {
        const tally = minute!.get(handler) ?? { received: 0, failed: 0, dead: 0, tookMs: [] };
        add(tally);
        minute!.set(handler, tally);
      }
    };
    for (const { fixed, deliveries } of rows) {
      const { receivedAt } = fixed;
      const names = deliveries.map(({ handler }) => handler);
      count(receivedAt, [null, ...names], (tally) => (tally.received += 1));
      for (const { handler, state, finishedAt, history } of deliveries) {
        for (const { endedAt, outcome } of history) {
          if (outcome !== 'done') count(endedAt, [null, handler], (tally) => (tally.failed += 1));
        }
        if (state === 'dead') count(finishedAt!, [null, handler], (tally) => (tally.dead += 1));
        const tookMs = Math.max(0, (finishedAt?.getTime() ?? 0) - receivedAt.getTime());
        if (state === 'done') count(finishedAt!, [null, handler], (t) => t.tookMs.push(tookMs));
      }
    }
    for (const [minute, byHandler] of tallies) {
      const total = countsOf(byHandler.get(null));
      byHandler.delete(null);
      const handlers = [...byHandler].map(([handler, tally]) => [handler, countsOf(tally)]);
      const startsAt = new Date(minute);
      this.#minutes.set(minute, { startsAt, total, handlers: Object.fromEntries(handlers) });
    }
    this.#end = Math.max(this.#end, end);
    this.prune(now);
  }

  /** The last minutes that were written. */
  last(minutes: number): ActivityMinute[] {
    const start = this.#end - minutes * MINUTE_MS;
    return [...this.#minutes.values()]
      .filter(({ startsAt }) => startsAt.getTime() >= start && startsAt.getTime() < this.#end)
      .toSorted((a, b) => a.startsAt.getTime() - b.startsAt.getTime());
  }

  prune(now: number): void {
    for (const at of this.#minutes.keys()) {
      if (at < now - (KEPT_MINUTES + 2) * MINUTE_MS) this.#minutes.delete(at);
    }
  }
}

function countsOf({ received, failed, dead, tookMs }: Tally = NOTHING): ActivityCounts {
  const sorted = tookMs.toSorted((a, b) => a - b);
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  const [p50Ms, p95Ms] = [nearestRank(0.5), nearestRank(0.95)];
  return { received, done: sorted.length, failed, dead, p50Ms, p95Ms };
}

const NOTHING: Tally = { received: 0, failed: 0, dead: 0, tookMs: [] };
