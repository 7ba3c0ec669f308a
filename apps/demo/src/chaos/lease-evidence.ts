import type { JournalEntry } from './application-protocol.js';
import type { InjectedFault } from './fault-injector.js';
import type { FaultKind } from './fault-plan.js';

/** What a process did, as its journal has it. */
export interface ProcessRecord {
  readonly name: string;
  readonly journal: readonly JournalEntry[];
  /** By the machine's monotonic clock; `null` if it ran to the end. */
  readonly endedAt: number | null;
}

/** A time without a heartbeat that the store had answered, at least as long as the lease. */
export interface HeartbeatGap {
  readonly from: number;
  readonly to: number;
  /** Whether a fault, or a machine that was too busy, kept the process from its heartbeats. */
  readonly explained: boolean;
}

/** Faults after which a process may send no heartbeat for a while. */
const SILENCING: ReadonlySet<FaultKind> = new Set([
  'stop',
  'takeover',
  'block',
  'cut',
  'partition',
  'terminate',
  'kill-backend',
  'restart',
]);
/** After a fault of the database, its connections take this long to come back, at most. */
const RECOVERY_MS = 5000;
/** A heartbeat that took this long, or an event loop that stood still for this long, explains a gap. */
const SLOW_MS = 150;

/**
 * The gaps between the heartbeats of each worker of a process that are at least as long as its lease. A process has several workers
 * one after the other, if it was declared dead or a claim failed.
 */
export function heartbeatGaps(
  { name, journal, endedAt }: ProcessRecord,
  faults: readonly InjectedFault[],
  leaseMs: number,
  until: number,
): HeartbeatGap[] {
  const beats = journal.filter((entry) => entry.kind === 'beat');
  const answered = new Set(
    journal.flatMap((entry) =>
      entry.kind === 'beat' || entry.kind === 'retired' ? [entry.at] : [],
    ),
  );
  const slow = [
    ...faults
      .filter((fault) => SILENCING.has(fault.kind))
      .filter((fault) => fault.process === null || fault.process === name)
      .map(({ from, to }) => [from, to + RECOVERY_MS] as const),
    ...beats
      .filter(({ at, end, alive }) => alive === null || end - at > SLOW_MS)
      .map(({ at, end }) => [at, end] as const),
    // The store did not answer before the process ended.
    ...journal
      .filter((entry) => entry.kind === 'sent' && !answered.has(entry.at))
      .map(({ at }) => [at, endedAt ?? until] as const),
    ...journal
      .filter((entry) => entry.kind === 'gap' && entry.end - entry.at > SLOW_MS)
      .map((entry) => [entry.at, (entry as { end: number }).end] as const),
  ];
  return [...Map.groupBy(beats, ({ worker }) => worker)].flatMap(([worker, own]) => {
    const retired = journal.find((entry) => entry.kind === 'retired' && entry.worker === worker);
    return own.flatMap(({ at: from, alive }, index) => {
      if (alive !== true) return [];
      const next = own.slice(index + 1).find((beat) => beat.alive !== null);
      const to = next?.end ?? retired?.at ?? endedAt ?? until;
      if (to - from < leaseMs) return [];
      const explained = slow.some(([start, end]) => start < to && end > from);
      return [{ from, to, explained }];
    });
  });
}
