import type { LeftMessages } from 'test-postgres/engines/engine-server';
import type { ReportedEvent } from './application-protocol.js';
import type { ProcessExit } from './application-fleet.js';
import { attemptIntervals, overlappingAttempts } from './attempt-intervals.js';
import type { Effect } from './chaos-store.js';
import { NEW_HANDLER, ONCE_PER_TRANSACTION } from './event-plan.js';
import type { PlannedEvent } from './event-plan.js';
import type { InjectedFault } from './fault-injector.js';
import { heartbeatGaps } from './heartbeat-gaps.js';
import type { ProcessRecord } from './heartbeat-gaps.js';
import { checkPayments } from './payment-checker.js';
import type { PaymentObservations, PaymentRule } from './payment-checker.js';
import type { SentEvent } from './sender.js';

/** Everything observed in a chaos run. Times are of the machine's monotonic clock. */
export interface Observations {
  readonly events: readonly PlannedEvent[];
  /** The expected payments; `null` if there are none. */
  readonly payments: Omit<PaymentObservations, 'effects'> | null;
  readonly sent: ReadonlyMap<string, SentEvent>;
  readonly effects: readonly Effect[];
  /** Events as the inbox stores them at the end. */
  readonly stored: readonly ReportedEvent[];
  readonly processes: readonly ProcessRecord[];
  readonly exits: readonly ProcessExit[];
  readonly faults: readonly InjectedFault[];
  /** Processes that did not end in time after SIGTERM. */
  readonly lateDrains: readonly string[];
  /** The store recorded the new handler between these times; `null` without a deploy. */
  readonly newHandlerKnown: { readonly from: number; readonly to: number } | null;
  readonly leaseMs: number;
  /** The messages of the service that are left in the engine; `null` if the application takes none from an engine. */
  readonly left: LeftMessages | null;
  /** When the chaos run ended. */
  readonly until: number;
}

/**
 * - `not-acknowledged`: no process acknowledged the event, although all processes ran at the end.
 * - `lost`: an acknowledged event is not stored, or has no committed effect of one of its handlers.
 * - `doubled`: a handler has two committed effects of one event, or of one transaction that it must handle once; or the
 *   inbox stores two events of such a transaction.
 * - `stale-commit`: an attempt committed its effect after another attempt of the same delivery had started.
 * - `unexpected-effect`: an event has an effect of a handler that must not have one.
 * - `unrecorded-duplicate`: a duplicate with another event id is not recorded on the first event.
 * - `stuck`: a delivery is still pending or running when the chaos run ends.
 * - `unexpected-dead-letter`: a delivery is dead, although its event kills no process.
 * - `missing-dead-letter`: an event kills its process in each attempt, and its delivery is not dead.
 * - `attempt-counted`: `attempts` includes an attempt that neither completed nor failed. The inbox may count such an
 *   attempt only if the delivery was a suspect when its process died.
 * - `overlapping-attempts`: two attempts of one handler and transaction overlap, and no lease was lost.
 * - `missing-heartbeat`: a process sent no heartbeat for a whole lease, and neither a fault nor a busy machine explains
 *   the gap.
 * - `process-exited`: a process ended by itself.
 * - `slow-drain`: a process did not end in time after SIGTERM.
 * - `left-in-engine`: the engine has messages that the service has not acknowledged when the chaos run ends.
 * - `engine-dead-letter`: the engine has dead letters of the service.
 *
 * {@link PaymentRule} has the rules of expected payments.
 */
export type Rule =
  | PaymentRule
  | 'not-acknowledged'
  | 'lost'
  | 'doubled'
  | 'stale-commit'
  | 'unexpected-effect'
  | 'unrecorded-duplicate'
  | 'stuck'
  | 'unexpected-dead-letter'
  | 'missing-dead-letter'
  | 'attempt-counted'
  | 'overlapping-attempts'
  | 'missing-heartbeat'
  | 'process-exited'
  | 'slow-drain'
  | 'left-in-engine'
  | 'engine-dead-letter';

/** A rule that the chaos run broke. */
export interface Violation {
  readonly rule: Rule;
  /** The events, handlers, attempts or processes that broke the rule. */
  readonly detail: string;
}

/** Returns every rule that the chaos run broke. */
export function check(observed: Observations): Violation[] {
  return [
    ...checkEffects(observed),
    ...checkStaleCommits(observed),
    ...checkDeliveries(observed),
    ...checkAttempts(observed),
    ...(observed.payments
      ? checkPayments({ ...observed.payments, effects: observed.effects })
      : []),
    ...observed.exits
      .filter(({ cause }) => cause === null)
      .map(({ status, log }) => violation('process-exited', `${status}: ${log.slice(-3000)}`)),
    ...observed.lateDrains.map((detail) => violation('slow-drain', detail)),
    ...checkEngine(observed),
  ];
}

function checkEngine({ left }: Observations): Violation[] {
  const { waiting = 0, deadLetters = 0 } = left ?? {};
  return [
    ...(waiting === 0 ? [] : [violation('left-in-engine', `${waiting} messages`)]),
    ...(deadLetters === 0 ? [] : [violation('engine-dead-letter', `${deadLetters} messages`)]),
  ];
}

/** The handlers that must have exactly one effect of a group of events (`once`), or may have one (`optional`). */
function expectedHandlers(
  group: readonly PlannedEvent[],
  { sent, newHandlerKnown: known }: Observations,
): { readonly once: readonly string[]; readonly optional: readonly string[] } {
  const [{ handlers, eventType }] = group as [PlannedEvent];
  if (eventType !== ONCE_PER_TRANSACTION || known === null) return { once: handlers, optional: [] };
  const times = group.map(({ id }) => sent.get(id)!);
  const firstSent = Math.min(...times.map(({ firstSentAt }) => firstSentAt ?? Infinity));
  const acknowledged = Math.min(...times.map((time) => time.acknowledgedAt ?? Infinity));
  if (firstSent > known.to) return { once: [...handlers, NEW_HANDLER], optional: [] };
  if (acknowledged < known.from) return { once: handlers, optional: [] };
  return { once: handlers, optional: [NEW_HANDLER] };
}

/**
 * Groups the events that are handled only once: for one type, the events of a transaction; for other types, each single
 * event.
 */
function onceGroups(events: readonly PlannedEvent[]): PlannedEvent[][] {
  const key = ({ id, eventType, transactionId }: PlannedEvent): string =>
    eventType === ONCE_PER_TRANSACTION ? `transaction ${transactionId}` : `event ${id}`;
  return [...Map.groupBy(events, key).values()];
}

function checkEffects(observed: Observations): Violation[] {
  const { events, sent, effects, stored } = observed;
  const byEvent = Map.groupBy(effects, ({ event }) => event);
  const storedById = new Map(stored.map((event) => [event.id, event]));
  return onceGroups(events).flatMap((group) => {
    const ids = group.map(({ id }) => id);
    const subject = `${ids.join(' or ')} (${group[0]!.eventType})`;
    const missing = ids.filter((id) => sent.get(id)!.acknowledgedAt === null);
    if (missing.length > 0) return [violation('not-acknowledged', missing.join(', '))];
    const originals = ids.filter((id) => storedById.has(id));
    if (originals.length !== 1) {
      return [violation(originals.length === 0 ? 'lost' : 'doubled', `${subject} in the inbox`)];
    }
    const recorded = storedById.get(originals[0]!)!.repeats;
    const unrecorded = ids.filter((id) => id !== originals[0] && !recorded.includes(id));
    const { once, optional } = expectedHandlers(group, observed);
    const own = ids.flatMap((id) => byEvent.get(id) ?? []);
    const counts = Map.groupBy(own, ({ handler }) => handler);
    return [
      ...unrecorded.map((id) =>
        violation('unrecorded-duplicate', `${id} is not among the repeats of ${originals[0]}`),
      ),
      ...once
        .filter((handler) => !counts.has(handler))
        .map((handler) => violation('lost', `${subject} for ${handler}`)),
      ...[...counts].flatMap(([handler, { length }]) => {
        if (length > 1) {
          return [violation('doubled', `${subject} for ${handler}: ${length} effects`)];
        }
        const expected = once.includes(handler) || optional.includes(handler);
        return expected ? [] : [violation('unexpected-effect', `${subject} for ${handler}`)];
      }),
    ];
  });
}

/** Once a newer attempt of a delivery has started, the fencing token must reject the commit of the older attempt. */
function checkStaleCommits({ effects, processes, faults, until }: Observations): Violation[] {
  const attempts = attemptIntervals(processes, faults, until);
  const byName = new Map(attempts.map((interval) => [interval.attempt, interval]));
  const byDelivery = Map.groupBy(attempts, ({ handler, event }) => `${handler} ${event}`);
  return effects.flatMap(({ attempt, handler, event }) => {
    const stale = byName.get(attempt);
    const newer = byDelivery
      .get(`${handler} ${event}`)
      ?.find(({ from }) => stale?.effectAt && from > stale.from && from < stale.effectAt);
    if (newer === undefined) return [];
    return [
      violation(
        'stale-commit',
        `${attempt} wrote the effect of ${event} for ${handler} after ${newer.attempt} began`,
      ),
    ];
  });
}

function checkDeliveries({ events, stored, processes }: Observations): Violation[] {
  const poisoned = new Set(
    events.flatMap(({ id, poisoned }) => poisoned.map((handler) => `${id} ${handler}`)),
  );
  const claims = Map.groupBy(
    processes.flatMap(({ journal }) => journal.filter((entry) => entry.kind === 'claimed-suspect')),
    ({ event, handler }) => `${event} ${handler}`,
  );
  return stored.flatMap(({ id, deliveries }) =>
    deliveries.flatMap(({ handler, state, attempts, history }) => {
      const outcomes = history.map(({ outcome, error }) => error ?? outcome).slice(-5);
      const subject = `${id} for ${handler}: ${state}, ${attempts} attempts; ${outcomes.join('; ')}`;
      if (state === 'pending' || state === 'running') return [violation('stuck', subject)];
      const poison = poisoned.has(`${id} ${handler}`);
      if (poison) return state === 'dead' ? [] : [violation('missing-dead-letter', subject)];
      if (state === 'dead') return [violation('unexpected-dead-letter', subject)];
      // The inbox keeps only the last 20 attempts of a delivery.
      if (history.length >= 20) return [];
      const failed = history.filter(({ outcome }) => outcome === 'failed').length;
      const counted = attempts - failed - (state === 'done' ? 1 : 0);
      const allowed = claims.get(`${id} ${handler}`)?.length ?? 0;
      return counted > allowed ? [violation('attempt-counted', subject)] : [];
    }),
  );
}

function checkAttempts({ processes, faults, leaseMs, until }: Observations): Violation[] {
  const gaps = new Map(
    processes.map((record) => [record.name, heartbeatGaps(record, faults, leaseMs, until)]),
  );
  /** Whether the store may have declared a worker of the process dead between these times. */
  const leaseLost = (name: string, from: number, to: number): boolean =>
    gaps.get(name)!.some((gap) => gap.from + leaseMs <= to && gap.to >= from);
  const unexplained = overlappingAttempts(attemptIntervals(processes, faults, until)).filter(
    ([first, second]) =>
      !leaseLost(first.process, first.from, second.from) &&
      // A stopped or blocked process may later start a delivery that it claimed before.
      !leaseLost(second.process, second.from, second.from),
  );
  return [
    ...unexplained.map(([first, second]) =>
      violation(
        'overlapping-attempts',
        `${second.attempt} (${second.event}) began ${Math.round(first.to - second.from)} ms before ` +
          `${first.attempt} (${first.event}) ended, ${first.handler} of ${first.transaction}`,
      ),
    ),
    ...[...gaps].flatMap(([name, found]) =>
      found
        .filter(({ explained }) => !explained)
        .map(({ from, to }) =>
          violation(
            'missing-heartbeat',
            `process ${name} sent no heartbeat for ${Math.round(to - from)} ms`,
          ),
        ),
    ),
  ];
}

function violation(rule: Rule, detail: string): Violation {
  return { rule, detail };
}
