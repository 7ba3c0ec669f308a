import type { JournalEntry } from './application-protocol.js';
import type { InjectedFault } from './fault-injector.js';
import type { FaultKind } from './fault-plan.js';

/** A process and its journal. */
export interface ProcessRecord {
  readonly name: string;
  readonly journal: readonly JournalEntry[];
  /** End of the process by the machine's monotonic clock; `null` if it ran until the chaos run ended. */
  readonly endedAt: number | null;
}

/** A time of at least one lease in which the store did not confirm a heartbeat of a worker. */
export interface HeartbeatGap {
  readonly from: number;
  readonly to: number;
  /** Whether a fault or a busy machine prevented the heartbeats. */
  readonly explained: boolean;
}

/** Faults that can prevent heartbeats. */
const SILENCING: ReadonlySet<FaultKind> = new Set([
  'stop',
  'takeover',
  'block',
  'cut',
  'partition',
  'terminate',
  'kill-backend',
  'restart',
  'stop-backends',
]);
/** The maximum time that connections may take to recover from a fault of the database, in milliseconds. */
const RECOVERY_MS = 5000;
/** The duration above which a heartbeat or a block of the event loop explains a gap, in milliseconds. */
const SLOW_MS = 150;

/**
 * The gaps between heartbeats that are at least as long as the lease, for each worker of a process. A process has
 * several workers, one after the other, if the store declared a worker dead or a claim failed.
 */
export function heartbeatGaps(
  record: ProcessRecord,
  faults: readonly InjectedFault[],
  leaseMs: number,
  until: number,
): HeartbeatGap[] {
  const { name, journal, endedAt } = record;
  const heartbeats = journal.filter((entry) => entry.kind === 'heartbeat-ended');
  const responded = new Set(
    journal.flatMap((entry) =>
      entry.kind === 'heartbeat-ended' || entry.kind === 'worker-retired' ? [entry.at] : [],
    ),
  );
  const slow = [
    ...faults
      .filter((fault) => SILENCING.has(fault.kind))
      .filter((fault) => fault.process === null || fault.process === name)
      .map(({ from, to }) => [from, to + RECOVERY_MS] as const),
    ...heartbeats
      .filter(({ at, end, alive }) => alive === null || end - at > SLOW_MS)
      .map(({ at, end }) => [at, end] as const),
    // The process ended before the store responded.
    ...journal
      .filter((entry) => entry.kind === 'heartbeat-started' && !responded.has(entry.at))
      .map(({ at }) => [at, endedAt ?? until] as const),
    ...journal
      .filter((entry) => entry.kind === 'event-loop-blocked')
      .filter(({ at, end }) => end - at > SLOW_MS)
      .map(({ at, end }) => [at, end] as const),
  ];
  const end = processEnd(record, faults) ?? until;
  return [...Map.groupBy(heartbeats, ({ worker }) => worker)].flatMap(([worker, own]) => {
    const retired = journal.find(
      (entry) => entry.kind === 'worker-retired' && entry.worker === worker,
    );
    return own.flatMap(({ at: from, alive }, index) => {
      if (alive !== true) return [];
      const next = own.slice(index + 1).find((heartbeat) => heartbeat.alive !== null);
      const to = next?.end ?? retired?.at ?? end;
      if (to - from < leaseMs) return [];
      const explained = slow.some(([start, end]) => start < to && end > from);
      return [{ from, to, explained }];
    });
  });
}

/**
 * When a process ended; `null` if it ran until the chaos run ended. The chaos runner may notice the end late, whether the
 * process killed itself or the runner killed it.
 */
export function processEnd(
  { name, journal, endedAt }: ProcessRecord,
  faults: readonly InjectedFault[],
): number | null {
  const last = journal.at(-1);
  if (last?.kind === 'process-killed') return last.at;
  return faults.find(({ kind, process }) => kind === 'kill' && process === name)?.from ?? endedAt;
}
