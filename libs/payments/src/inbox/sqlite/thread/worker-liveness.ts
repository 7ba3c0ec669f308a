import type { Times } from '../store-clock.js';

/** A worker, as its row says. */
export interface WorkerRow {
  readonly id: string;
  readonly lease_ms: number;
  readonly beat_at: number;
  readonly retired: 0 | 1;
}

interface Seen {
  readonly beatAt: number;
  /** Since when the heartbeat is known, on this process's monotonic clock; `null`: after the last look. */
  readonly since: number | null;
}

/**
 * Finds out which workers send no heartbeats. It compares no clocks of different processes, because they may differ by
 * any amount after a jump of the wall clock: a heartbeat is a change of `beat_at`. The time of a look is when it was
 * requested: if it then waited for a lock, it sees heartbeats that were sent after that time. So the age of a heartbeat
 * counts from the first look after the one that saw it.
 */
export class WorkerLiveness {
  #seen = new Map<string, Seen>();

  /** Looks at all workers; returns those that are dead, or whose grace has ended. */
  look<Row extends WorkerRow>(rows: readonly Row[], { monotonic }: Times): Row[] {
    const seen = new Map<string, Seen>();
    const dead: Row[] = [];
    for (const row of rows) {
      const known = this.#seen.get(row.id);
      const since = known?.beatAt === row.beat_at ? (known.since ?? monotonic) : null;
      seen.set(row.id, { beatAt: row.beat_at, since });
      const silentMs = since === null ? 0 : monotonic - since;
      // A grace of 0 ends at once.
      if (row.retired === 1 ? silentMs >= row.lease_ms : silentMs > row.lease_ms) dead.push(row);
    }
    this.#seen = seen;
    return dead;
  }
}
