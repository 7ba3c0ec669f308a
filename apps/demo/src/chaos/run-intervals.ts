import type { ProcessRecord } from './lease-evidence.js';

/** When a run had its ordering key for itself. Times are of the machine's monotonic clock. */
export interface RunInterval {
  readonly run: string;
  /** Name of the journal of its process. */
  readonly process: string;
  readonly handler: string;
  readonly event: string;
  readonly transaction: string;
  readonly from: number;
  readonly to: number;
  /** When its effect was written, and the transaction could commit; `null` if it did not get there. */
  readonly worked: number | null;
}

/**
 * The runs of the journals. A run ends, at the latest, when its transaction may commit, its handler has ended, its time
 * limit aborts its signal, or its process ends: after each of these the store may start the next run of the key.
 */
export function runIntervals(processes: readonly ProcessRecord[], until: number): RunInterval[] {
  return processes.flatMap(({ name, journal, endedAt }) => {
    const ends = new Map<string, number>();
    const worked = new Map<string, number>();
    for (const entry of journal) {
      const ending =
        entry.kind === 'worked' ||
        entry.kind === 'end' ||
        entry.kind === 'die' ||
        (entry.kind === 'abort' && entry.reason.startsWith('TimeoutError'));
      if (entry.kind === 'worked') worked.set(entry.run, entry.at);
      if (ending && !ends.has(entry.run)) ends.set(entry.run, entry.at);
    }
    return journal.flatMap((entry) => {
      if (entry.kind !== 'start') return [];
      const { run, handler, event, transaction, at } = entry;
      const to = ends.get(run) ?? endedAt ?? until;
      const interval = { run, process: name, handler, event, transaction, from: at, to };
      return [{ ...interval, worked: worked.get(run) ?? null }];
    });
  });
}

/** Pairs of runs of one handler and transaction that were under way at the same time, the earlier one first. */
export function overlaps(runs: readonly RunInterval[]): [RunInterval, RunInterval][] {
  const byKey = Map.groupBy(runs, ({ handler, transaction }) => `${handler} ${transaction}`);
  return [...byKey.values()].flatMap((group) => {
    const sorted = group.toSorted((a, b) => a.from - b.from);
    return sorted.flatMap((first, index) =>
      sorted
        .slice(index + 1)
        .filter((second) => second.from < first.to)
        .map((second): [RunInterval, RunInterval] => [first, second]),
    );
  });
}
