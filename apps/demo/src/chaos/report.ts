import type { Observations, Rule, Violation } from './checker.js';
import type { Fault, FaultKind, StoreKind } from './fault-plan.js';
import { runIntervals, overlaps } from './run-intervals.js';

/** The result of a run on one store. JSON. */
export interface ChaosResult {
  readonly store: StoreKind;
  readonly seed: string;
  readonly seconds: number;
  readonly ok: boolean;
  readonly counts: {
    readonly events: number;
    readonly requests: number;
    readonly acknowledged: number;
    readonly effects: number;
    readonly runs: number;
    /** Two runs of one handler and transaction at once: all that were seen, explained or not. */
    readonly overlaps: number;
    /** Processes that were started. */
    readonly processes: number;
    /** Processes that an event killed. */
    readonly poisoned: number;
    readonly dead: number;
    /** Attempts that the histories have as lost. */
    readonly lostAttempts: number;
  };
  /** Milliseconds from the first acknowledgement of an event to the last effect of it; `null` without any. */
  readonly handledMs: { readonly p50: number; readonly p99: number; readonly max: number } | null;
  /** Faults that took place, by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  /** The faults that were planned. */
  readonly plan: readonly Fault[];
  readonly violations: readonly Violation[];
  /** Folder with the journals of the processes; `null` if no promise was broken. */
  readonly journals: string | null;
}

export function summarize(
  run: Pick<ChaosResult, 'store' | 'seed' | 'seconds' | 'journals'> & { readonly requests: number },
  plan: readonly Fault[],
  observed: Observations,
  violations: readonly Violation[],
): ChaosResult {
  const { requests, ...facts } = run;
  const { events, sent, effects, stored, processes, ends, faults, until } = observed;
  const runs = runIntervals(processes, until);
  const deliveries = stored.flatMap((event) => event.deliveries);
  return {
    ...facts,
    ok: violations.length === 0,
    counts: {
      events: events.length,
      requests,
      acknowledged: [...sent.values()].filter((one) => one.acknowledgedAt !== null).length,
      effects: effects.length,
      runs: runs.length,
      overlaps: overlaps(runs).length,
      processes: processes.length,
      poisoned: ends.filter(({ why }) => why === 'poisoned').length,
      dead: deliveries.filter(({ state }) => state === 'dead').length,
      lostAttempts: deliveries
        .flatMap(({ history }) => history)
        .filter(({ outcome }) => outcome === 'lost').length,
    },
    handledMs: handled(observed),
    faults: Object.fromEntries(
      [...Map.groupBy(faults, ({ kind }) => kind)].map(([kind, { length }]) => [kind, length]),
    ),
    plan,
    violations,
  };
}

/** The result in lines for people. */
export function toLines({
  counts,
  handledMs,
  faults,
  violations,
  journals,
}: ChaosResult): string[] {
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`;
  const rules = [...Map.groupBy(violations, ({ rule }) => rule)];
  const rows: [string, number | string][] = [
    ['events', `${counts.events}, sent ${counts.requests} times`],
    ['acknowledged', counts.acknowledged],
    ['effects', counts.effects],
    ['runs', `${counts.runs}, ${counts.overlaps} at once for a process without its lease`],
    ['processes', `${counts.processes}, ${counts.poisoned} killed by an event`],
    ['dead letters', counts.dead],
    [
      'faults',
      Object.entries(faults)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', '),
    ],
    [
      'from receipt to the last effect',
      handledMs === null
        ? 'none'
        : `p50 ${seconds(handledMs.p50)}, p99 ${seconds(handledMs.p99)}, at most ${seconds(handledMs.max)}`,
    ],
    ...rules.map(([rule, { length }]): [Rule, number] => [rule, length]),
  ];
  return [
    ...rows.map(([name, value]) => `    ${name.padEnd(34)}${value}`),
    ...rules.flatMap(([rule, found]) =>
      found.slice(0, 5).map(({ detail }) => `! ${rule}: ${detail}`),
    ),
    ...(journals === null ? [] : [`! journals: ${journals}`]),
  ];
}

function handled({ effects, sent, processes }: Observations): ChaosResult['handledMs'] {
  const worked = new Map(
    processes.flatMap(({ journal }) =>
      journal.flatMap((entry) => (entry.kind === 'worked' ? [[entry.run, entry.at] as const] : [])),
    ),
  );
  const times = [...Map.groupBy(effects, ({ event }) => event)]
    .map(([id, own]) => {
      const last = Math.max(...own.map(({ run }) => worked.get(run) ?? 0));
      return Math.max(0, last - (sent.get(id)?.acknowledgedAt ?? last));
    })
    .toSorted((a, b) => a - b);
  if (times.length === 0) return null;
  const rank = (part: number): number => times[Math.ceil(times.length * part) - 1]!;
  return { p50: rank(0.5), p99: rank(0.99), max: times.at(-1)! };
}
