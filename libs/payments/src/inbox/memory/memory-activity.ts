import type { ActivityCounts, ActivityMinute } from '../store/inbox-store.js';
import type { EventRow } from './memory-rows.js';

const MINUTE_MS = 60_000;
const KEPT_MINUTES = 1440;
/** How long after its end a minute is closed. */
const CLOSING_MS = 10_000;
/** How many closed minutes are written again if the wall clock was set back. */
const REWRITTEN_MINUTES = 2;

interface Occurrence {
  /** `null` counts for all handlers together only. */
  readonly handler: string | null;
  readonly what: 'received' | 'done' | 'failed' | 'dead';
  readonly tookMs: number;
}

/** The activity of the closed minutes of a memory store. */
export class MemoryActivity {
  #minutes: ActivityMinute[] = [];
  /** End of the last minute that was written. */
  #end = -Infinity;

  summarize(rows: Iterable<EventRow>, now: number): void {
    const end = startOf(now - CLOSING_MS);
    if (end < this.#end) this.#rewriteFrom(end - REWRITTEN_MINUTES * MINUTE_MS);
    const start = Math.max(this.#end, end - KEPT_MINUTES * MINUTE_MS);
    const byMinute = new Map<number, Occurrence[]>();
    for (let minute = start; minute < end; minute += MINUTE_MS) byMinute.set(minute, []);
    const note = (at: number, handler: string | null, what: Occurrence['what'], tookMs = 0) =>
      byMinute.get(startOf(at))?.push({ handler, what, tookMs });
    for (const { receivedMs, deliveries } of rows) {
      note(receivedMs, null, 'received');
      for (const { handler, state, finishedAt, earlier } of deliveries) {
        note(receivedMs, handler.name, 'received');
        for (const [, startedMs, tookMs, outcome] of earlier) {
          if (outcome !== 'd') note(startedMs + Math.max(0, tookMs), handler.name, 'failed');
        }
        if (state !== 'done' && state !== 'dead') continue;
        note(finishedAt!, handler.name, state, Math.max(0, finishedAt! - receivedMs));
      }
    }
    for (const [minute, all] of byMinute) {
      const total = countsOf(all.filter(({ what, handler }) => what !== 'received' || !handler));
      const byHandler = Map.groupBy(all, ({ handler }) => handler ?? '');
      byHandler.delete('');
      const counts = [...byHandler].map(([handler, own]) => [handler, countsOf(own)]);
      const handlers = Object.fromEntries(counts) as ActivityMinute['handlers'];
      this.#minutes.push({ startsAt: new Date(minute), total, handlers });
    }
    this.#end = end;
    this.prune(now);
  }

  /** The last minutes that were written. */
  last(minutes: number): ActivityMinute[] {
    return this.#minutes.filter(({ startsAt }) => +startsAt >= this.#end - minutes * MINUTE_MS);
  }

  /** The wall clock was set back: what was written about the future is written again when it is over. */
  #rewriteFrom(start: number): void {
    this.#minutes = this.#minutes.filter(({ startsAt }) => startsAt.getTime() < start);
    this.#end = start;
  }

  prune(now: number): void {
    const start = now - (KEPT_MINUTES + 2) * MINUTE_MS;
    this.#minutes = this.#minutes.filter(({ startsAt }) => startsAt.getTime() >= start);
  }
}

function countsOf(all: readonly Occurrence[]): ActivityCounts {
  const of = (kind: Occurrence['what']) => all.filter(({ what }) => what === kind);
  const tookMs = of('done').map((done) => done.tookMs);
  const sorted = tookMs.toSorted((a, b) => a - b);
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  const [p50Ms, p95Ms] = [nearestRank(0.5), nearestRank(0.95)];
  const [received, failed, dead] = [of('received').length, of('failed').length, of('dead').length];
  return { received, done: sorted.length, failed, dead, p50Ms, p95Ms };
}

function startOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}
