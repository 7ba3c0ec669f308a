import type { InjectedFault } from './fault-injector.js';
import { processEnd } from './heartbeat-gaps.js';
import type { ProcessRecord } from './heartbeat-gaps.js';

/** The time during which an attempt occupied its ordering key. Times are of the machine's monotonic clock. */
export interface AttemptInterval {
  readonly attempt: string;
  /** Journal name of the process. */
  readonly process: string;
  readonly handler: string;
  readonly event: string;
  readonly transaction: string;
  readonly from: number;
  readonly to: number;
  /** When the attempt wrote its effect, so that its transaction could commit; `null` if it wrote none. */
  readonly effectAt: number | null;
}

/**
 * The attempts in the journals. An attempt ends at the first of these: its transaction can commit, its handler returns
 * or throws, its time limit aborts its signal, its process ends. After each of these, the store may start the next
 * attempt of the key.
 */
export function attemptIntervals(
  processes: readonly ProcessRecord[],
  faults: readonly InjectedFault[],
  until: number,
): AttemptInterval[] {
  return processes.flatMap((record) => {
    const { name, journal } = record;
    const processEndedAt = processEnd(record, faults) ?? until;
    const ends = new Map<string, number>();
    const effects = new Map<string, number>();
    for (const entry of journal) {
      const ending =
        entry.kind === 'effect-written' ||
        entry.kind === 'attempt-ended' ||
        entry.kind === 'process-killed' ||
        (entry.kind === 'attempt-aborted' && entry.reason.startsWith('TimeoutError'));
      if (entry.kind === 'effect-written') effects.set(entry.attempt, entry.at);
      if (ending && !ends.has(entry.attempt)) ends.set(entry.attempt, entry.at);
    }
    return journal.flatMap((entry) => {
      if (entry.kind !== 'attempt-started') return [];
      const { attempt, handler, event, transaction, at } = entry;
      const to = ends.get(attempt) ?? processEndedAt;
      const interval = { attempt, process: name, handler, event, transaction, from: at, to };
      return [{ ...interval, effectAt: effects.get(attempt) ?? null }];
    });
  });
}

/** Pairs of attempts of one handler and transaction that overlap in time; the earlier attempt is first. */
export function overlappingAttempts(
  attempts: readonly AttemptInterval[],
): [AttemptInterval, AttemptInterval][] {
  const byKey = Map.groupBy(attempts, ({ handler, transaction }) => `${handler} ${transaction}`);
  return [...byKey.values()].flatMap((group) => {
    const sorted = group.toSorted((a, b) => a.from - b.from);
    return sorted.flatMap((first, index) =>
      sorted
        .slice(index + 1)
        .filter((second) => second.from < first.to)
        .map((second): [AttemptInterval, AttemptInterval] => [first, second]),
    );
  });
}
