import { attemptIntervals, overlappingAttempts } from './attempt-intervals.js';
import type { Observations, Rule, Violation } from './checker.js';
import type { Fault, FaultKind } from './fault-plan.js';

/** The number of expected payments, by their outcome. */
export interface PaymentCounts {
  readonly paid: number;
  readonly declined: number;
  readonly overdue: number;
  /** Payments that were overdue before a poll found their result. */
  readonly overdueBefore: number;
  /** A process was killed before it sent the request, so that the service has no transaction. */
  readonly neverRequested: number;
  readonly byPoll: number;
  readonly byWebhook: number;
  readonly contradictions: number;
  readonly polls: number;
}

/** The result of a chaos run on one store or for one service, as it is written to the JSON file. */
export interface ChaosResult {
  /** The kind of the store, or the name of the service. */
  readonly store: string;
  readonly seed: string;
  readonly seconds: number;
  readonly ok: boolean;
  readonly counts: {
    readonly events: number;
    readonly requests: number;
    /** The outcomes of the expected payments; `null` if there are none. */
    readonly payments: PaymentCounts | null;
    readonly acknowledged: number;
    readonly effects: number;
    readonly attempts: number;
    /** Pairs of overlapping attempts of one handler and transaction, with or without an explanation. */
    readonly overlaps: number;
    /** Processes that were started. */
    readonly processes: number;
    /** Processes that an event killed. */
    readonly crashed: number;
    readonly deadLetters: number;
    /** Attempts with the outcome `lost`. */
    readonly lostAttempts: number;
  };
  /** Number of injected faults, by kind. */
  readonly faults: Readonly<Partial<Record<FaultKind, number>>>;
  /** The planned faults. */
  readonly plan: readonly Fault[];
  readonly violations: readonly Violation[];
  /** Folder with the journals of the processes; `null` if no promise was broken. */
  readonly journals: string | null;
}

/** Returns the result of a chaos run. */
export function summarize(
  run: Pick<ChaosResult, 'store' | 'seed' | 'seconds' | 'journals'> & { readonly requests: number },
  plan: readonly Fault[],
  observed: Observations,
  violations: readonly Violation[],
): ChaosResult {
  const { requests, ...facts } = run;
  const { events, sent, effects, stored, processes, exits, faults, until } = observed;
  const attempts = attemptIntervals(processes, faults, until);
  const deliveries = stored.flatMap((event) => event.deliveries);
  return {
    ...facts,
    ok: violations.length === 0,
    counts: {
      events: events.length,
      requests,
      payments: observed.payments && countPayments(observed),
      acknowledged: [...sent.values()].filter((event) => event.acknowledgedAt !== null).length,
      effects: effects.length,
      attempts: attempts.length,
      overlaps: overlappingAttempts(attempts).length,
      processes: processes.length,
      crashed: exits.filter(({ cause }) => cause === 'crashed').length,
      deadLetters: deliveries.filter(({ state }) => state === 'dead').length,
      lostAttempts: deliveries
        .flatMap(({ history }) => history)
        .filter(({ outcome }) => outcome === 'lost').length,
    },
    faults: Object.fromEntries(
      [...Map.groupBy(faults, ({ kind }) => kind)].map(([kind, { length }]) => [kind, length]),
    ),
    plan,
    violations,
  };
}

/** Returns the lines that the chaos runner prints for a result. */
export function toLines({ counts, faults, violations, journals }: ChaosResult): string[] {
  const rules = [...Map.groupBy(violations, ({ rule }) => rule)];
  const rows: [string, number | string][] = [
    ['events', `${counts.events}, sent ${counts.requests} times`],
    ['acknowledged', counts.acknowledged],
    ...paymentRows(counts.payments),
    ['effects', counts.effects],
    ['attempts', `${counts.attempts}, ${counts.overlaps} overlapping pairs`],
    ['processes', `${counts.processes}, ${counts.crashed} killed by an event`],
    ['dead letters', counts.deadLetters],
    [
      'faults',
      Object.entries(faults)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', '),
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

function paymentRows(payments: PaymentCounts | null): [string, string][] {
  if (payments === null) return [];
  const { paid, declined, overdue, overdueBefore, neverRequested, byPoll, byWebhook } = payments;
  return [
    [
      'expected payments',
      `${paid} paid, ${declined} declined, ${overdue} overdue, ${overdueBefore} overdue before, ` +
        `${neverRequested} not requested; ${byPoll} found by poll, ${byWebhook} by webhook; ` +
        `${payments.contradictions} contradictions, ${payments.polls} polls`,
    ],
  ];
}

function countPayments(observed: Observations): PaymentCounts {
  const { transactions = [], expectations = [], payments = [] } = observed.payments ?? {};
  const count = (status: string): number =>
    transactions.filter((one) => one.status === status).length;
  const requested = new Set(transactions.map(({ payment }) => payment.reference));
  const overdue = new Set(
    observed.effects.flatMap(({ handler, transaction }) =>
      handler === 'overdue' ? transaction : [],
    ),
  );
  return {
    paid: count('complete'),
    declined: count('declined'),
    overdue: expectations.filter(({ state }) => state === 'overdue').length,
    overdueBefore: expectations.filter(
      ({ reference, state }) => state === 'fulfilled' && overdue.has(reference),
    ).length,
    neverRequested: payments.filter(({ reference }) => !requested.has(reference)).length,
    byPoll: expectations.filter(({ fulfilledBy }) => fulfilledBy === 'poll').length,
    byWebhook: expectations.filter(({ fulfilledBy }) => fulfilledBy === 'webhook').length,
    contradictions: expectations.filter(({ contradiction }) => contradiction !== null).length,
    polls: expectations.reduce((sum, { polls }) => sum + polls, 0),
  };
}
