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
  /** When it sent that heartbeat, at the earliest, on this process's monotonic clock; `null`: after that look. */
  readonly since: number | null;
}

/**
 * Finds out which workers send no heartbeats. It compares no clocks of different processes: a heartbeat is a change
 * of `beat_at`, and its age counts from when this process saw the change on its own monotonic clock. What the value
 * says about the time of the heartbeat is used only as far back as the look before, which saw another value. The time of
 * a look is when it was asked for: if it then waited for a lock, it sees heartbeats that were sent after that time.
 */
export class WorkerLiveness {
  #seen = new Map<string, Seen>();
  #lookedAt: number | undefined;

  /** Looks at all workers; returns those that are dead, or whose grace has ended. */
  look<Row extends WorkerRow>(rows: readonly Row[], { clock, monotonic }: Times): Row[] {
    const earliest = this.#lookedAt ?? monotonic;
    const seen = new Map<string, Seen>();
    const dead: Row[] = [];
    for (const row of rows) {
      const age = clock - row.beat_at;
      const known = this.#seen.get(row.id);
      const sentAt = age < 0 ? null : Math.max(earliest, monotonic - age);
      const since = known?.beatAt === row.beat_at ? (known.since ?? monotonic) : sentAt;
      seen.set(row.id, { beatAt: row.beat_at, since });
      const silentMs = since === null ? 0 : monotonic - since;
      // A grace of 0 ends at once.
      if (row.retired === 1 ? silentMs >= row.lease_ms : silentMs > row.lease_ms) dead.push(row);
    }
    this.#seen = seen;
    this.#lookedAt = monotonic;
    return dead;
  }
}
