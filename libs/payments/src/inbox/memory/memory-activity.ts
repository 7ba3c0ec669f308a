import { toHistory } from '../delivery-history.js';
import type { ActivityCounts, ActivityMinute } from '../inbox-store.js';
import type { EventRow } from './memory-rows.js';

const MINUTE_MS = 60_000;
const KEPT_MINUTES = 1440;
/** How long after its end a minute is closed. */
const CLOSING_MS = 10_000;

/** Something that counts as activity. Times are in milliseconds since the epoch. */
interface Occurrence {
  readonly at: number;
  readonly what: 'received' | 'done' | 'failed' | 'dead';
  /** `null`: counts for all handlers together only. */
  readonly handler: string | null;
  readonly tookMs: number;
}

/** The activity of the closed minutes of a memory store. */
export class MemoryActivity {
  #minutes: ActivityMinute[] = [];
  /** End of the last minute that was written. */
  #end = -Infinity;

  summarize(rows: Iterable<EventRow>, now: number): void {
    const end = startOf(now - CLOSING_MS);
    const start = Math.max(this.#end, end - KEPT_MINUTES * MINUTE_MS);
    const byMinute = new Map<number, Occurrence[]>();
    for (let minute = start; minute < end; minute += MINUTE_MS) byMinute.set(minute, []);
    for (const row of rows) {
      for (const it of occurrencesOf(row)) byMinute.get(startOf(it.at))?.push(it);
    }
    for (const [minute, all] of byMinute) {
      const byHandler = Map.groupBy(all, ({ handler }) => handler);
      const total = all.filter(({ what, handler }) => what !== 'received' || handler === null);
      byHandler.delete(null);
      const handlers = [...byHandler].map(([handler, own]) => [handler, countsOf(own)]);
      const startsAt = new Date(minute);
      const own = Object.fromEntries(handlers);
      this.#minutes.push({ startsAt, total: countsOf(total), handlers: own });
    }
    this.#end = Math.max(this.#end, end);
    this.prune(now);
  }

  /** The last minutes that were written. */
  last(minutes: number): ActivityMinute[] {
    const start = this.#end - minutes * MINUTE_MS;
    return this.#minutes.filter(({ startsAt }) => startsAt.getTime() >= start);
  }

  prune(now: number): void {
    const start = now - (KEPT_MINUTES + 2) * MINUTE_MS;
    this.#minutes = this.#minutes.filter(({ startsAt }) => startsAt.getTime() >= start);
  }
}

function* occurrencesOf({ fixed, deliveries }: EventRow): Generator<Occurrence> {
  const at = fixed.receivedAt.getTime();
  yield { at, what: 'received', handler: null, tookMs: 0 };
  for (const { handler, state, finishedAt, history } of deliveries) {
    const { name } = handler;
    yield { at, what: 'received', handler: name, tookMs: 0 };
    for (const { endedAt, outcome } of toHistory(history)) {
      if (outcome !== 'done') {
        yield { at: endedAt.getTime(), what: 'failed', handler: name, tookMs: 0 };
      }
    }
    if (state === 'done' || state === 'dead') {
      const tookMs = Math.max(0, finishedAt! - at);
      yield { at: finishedAt!, what: state, handler: name, tookMs };
    }
  }
}

function countsOf(all: readonly Occurrence[]): ActivityCounts {
  const count = (kind: Occurrence['what']) => all.filter(({ what }) => what === kind).length;
  const done = all.filter(({ what }) => what === 'done').map(({ tookMs }) => tookMs);
  const sorted = done.toSorted((a, b) => a - b);
  const nearestRank = (share: number) => sorted[Math.ceil(share * sorted.length) - 1] ?? null;
  return {
    received: count('received'),
    done: sorted.length,
    failed: count('failed'),
    dead: count('dead'),
    p50Ms: nearestRank(0.5),
    p95Ms: nearestRank(0.95),
  };
}

function startOf(ms: number): number {
  return Math.floor(ms / MINUTE_MS) * MINUTE_MS;
}
