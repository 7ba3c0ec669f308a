import type { BookedPayment } from '../shop.client.js';

/** What was seen of a run. Times are milliseconds since 1970. */
export interface Sightings {
  /** Ids of the transactions that were paid. */
  readonly paid: readonly string[];
  /** When the service first saw an event of a transaction answered 2xx. */
  readonly acknowledged: ReadonlyMap<string, number>;
  /** The ledger at the end. */
  readonly ledger: readonly BookedPayment[];
  /** When shops were killed. */
  readonly kills: readonly number[];
  /** Deliveries by state, at the end. */
  readonly inbox: Readonly<Record<string, number>>;
  /** How shops ended that nobody killed. */
  readonly falls: readonly string[];
}

/** What is to be said of a run. */
export interface Tally {
  readonly paid: number;
  readonly acknowledged: number;
  /** Acknowledged and not in the ledger. */
  readonly lost: number;
  /** Booked more than once. */
  readonly doubled: number;
  /** Booked and never paid. */
  readonly invented: number;
  /** Deliveries that were given up. */
  readonly dead: number;
  /** Deliveries that were still to be handled when the run's time was up. */
  readonly unsettled: number;
  readonly kills: number;
  /** Shops that ended without having been killed. */
  readonly falls: number;
  /** From a kill to the first booking after it, in milliseconds; `null` where there was none. */
  readonly recovery: { readonly median: number; readonly max: number } | null;
  /** From a kill until all that was acknowledged before it was booked, at the most, in milliseconds. */
  readonly caughtUp: number;
}

/** Counts. */
export function tally({ paid, acknowledged, ledger, kills, inbox, falls }: Sightings): Tally {
  const booked = new Map<string, number[]>();
  for (const { transactionId, bookedAt } of ledger) {
    booked.set(transactionId, [...(booked.get(transactionId) ?? []), Date.parse(bookedAt)]);
  }
  const bookings = [...booked.values()].flat();
  const recoveries = kills
    .map((kill) => Math.min(...bookings.filter((at) => at > kill)) - kill)
    .filter(Number.isFinite)
    .toSorted((a, b) => a - b);
  const catchUps = kills.flatMap((kill) =>
    [...acknowledged]
      .filter(([, at]) => at < kill)
      .map(([id]) => Math.min(...(booked.get(id) ?? [])) - kill)
      .filter(Number.isFinite),
  );
  const known = new Set(paid);
  return {
    paid: paid.length,
    acknowledged: acknowledged.size,
    lost: [...acknowledged.keys()].filter((id) => !booked.has(id)).length,
    doubled: [...booked.values()].filter((times) => times.length > 1).length,
    invented: [...booked.keys()].filter((id) => !known.has(id)).length,
    dead: inbox['dead'] ?? 0,
    unsettled: (inbox['pending'] ?? 0) + (inbox['running'] ?? 0),
    kills: kills.length,
    falls: falls.length,
    recovery:
      recoveries.length === 0
        ? null
        : { median: recoveries[Math.floor(recoveries.length / 2)]!, max: recoveries.at(-1)! },
    caughtUp: Math.max(0, ...catchUps),
  };
}

/** Whether everything held: nothing lost, nothing booked twice, and no shop that fell by itself. */
export function holds({ lost, doubled, invented, unsettled, falls, acknowledged }: Tally): boolean {
  // A run in which nothing was acknowledged proves nothing.
  return acknowledged > 0 && lost + doubled + invented + unsettled + falls === 0;
}

/** A line for each count. */
export function toLines(result: Tally): string[] {
  const { recovery } = result;
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
  const rows: [string, string | number][] = [
    ['paid', result.paid],
    ['acknowledged', result.acknowledged],
    ['lost', result.lost],
    ['doubled', result.doubled],
    ['booked, never paid', result.invented],
    ['dead', result.dead],
    ['not handled in time', result.unsettled],
    ['shops killed', result.kills],
    ['shops that fell by themselves', result.falls],
    [
      'from a kill to the next booking',
      recovery === null
        ? 'there was none'
        : `${seconds(recovery.median)} in the median, ${seconds(recovery.max)} at the most`,
    ],
    ['until all acknowledged before it', `${seconds(result.caughtUp)} at the most`],
  ];
  return rows.map(([name, value]) => `    ${name.padEnd(34)}${value}`);
}
