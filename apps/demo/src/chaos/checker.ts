import type { ReportedEvent } from './application-protocol.js';
import type { ProcessEnd } from './application-fleet.js';
import type { Effect } from './chaos-store.js';
import { NEW_HANDLER, ONCE_PER_TRANSACTION } from './event-plan.js';
import type { PlannedEvent } from './event-plan.js';
import type { InjectedFault } from './fault-injector.js';
import { heartbeatGaps } from './lease-evidence.js';
import type { ProcessRecord } from './lease-evidence.js';
import { overlaps, runIntervals } from './run-intervals.js';
import type { SentEvent } from './sender.js';

/** All that was observed in a run. Times are of the machine's monotonic clock. */
export interface Observations {
  readonly events: readonly PlannedEvent[];
  readonly sent: ReadonlyMap<string, SentEvent>;
  readonly effects: readonly Effect[];
  /** Events as the inbox has them at the end. */
  readonly stored: readonly ReportedEvent[];
  readonly processes: readonly ProcessRecord[];
  readonly ends: readonly ProcessEnd[];
  readonly faults: readonly InjectedFault[];
  /** Processes that did not end in time after SIGTERM. */
  readonly lateDrains: readonly string[];
  /** Between these times the new handler became known to the store; `null` without a deploy. */
  readonly newHandlerKnown: { readonly from: number; readonly to: number } | null;
  readonly leaseMs: number;
  /** When the run ended. */
  readonly until: number;
}

/**
 * - `unanswered`: an event that was never acknowledged, though all processes ran at the end.
 * - `lost`: an acknowledged event is not stored, or has no effect of a handler.
 * - `doubled`: two committed effects of one event and handler, or of one transaction that is handled once.
 * - `stale`: an effect of a run, although the delivery ran in another process before the run committed.
 * - `invented`: an effect that no event is to have.
 * - `silent`: a duplicate with another event id that is noted nowhere.
 * - `stuck`: a delivery that is pending or running after the quiet time.
 * - `dead`: a dead delivery of an event that is no poison.
 * - `not-dead`: a poison event whose delivery is not dead.
 * - `charged`: a delivery that was charged an attempt, although it did not fail, nor run alone as its process died.
 * - `overlap`: two runs of one handler and transaction at once, though the first one's process had its lease.
 * - `heartbeat`: a process that sent no heartbeat for a whole lease, for no reason.
 * - `fell`: a process that ended by itself.
 * - `drain`: a process that did not end in time after SIGTERM.
 */
export type Rule =
  | 'unanswered'
  | 'lost'
  | 'doubled'
  | 'stale'
  | 'invented'
  | 'silent'
  | 'stuck'
  | 'dead'
  | 'not-dead'
  | 'charged'
  | 'overlap'
  | 'heartbeat'
  | 'fell'
  | 'drain';

/** A promise that was broken. */
export interface Violation {
  readonly rule: Rule;
  /** What it was seen on, in words. */
  readonly detail: string;
}

/** Every promise that the run broke. */
export function check(observed: Observations): Violation[] {
  return [
    ...checkEffects(observed),
    ...checkFences(observed),
    ...checkDeliveries(observed),
    ...checkRuns(observed),
    ...observed.ends
      .filter(({ why }) => why === null)
      .map(({ how, log }) => violation('fell', `${how}: ${log.slice(-600)}`)),
    ...observed.lateDrains.map((detail) => violation('drain', detail)),
  ];
}

/** Handlers that are to have exactly one effect, at most one, and none, of the events of one once-key. */
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

/** Events by what is handled once: the transaction, for some types, and else the event. */
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
    const what = `${ids.join(' or ')} (${group[0]!.eventType})`;
    const unanswered = ids.filter((id) => sent.get(id)!.acknowledgedAt === null);
    if (unanswered.length > 0) return [violation('unanswered', unanswered.join(', '))];
    const originals = ids.filter((id) => storedById.has(id));
    if (originals.length !== 1) {
      return [violation(originals.length === 0 ? 'lost' : 'doubled', `${what} in the inbox`)];
    }
    const noted = storedById.get(originals[0]!)!.repeats;
    const silent = ids.filter((id) => id !== originals[0] && !noted.includes(id));
    const { once, optional } = expectedHandlers(group, observed);
    const own = ids.flatMap((id) => byEvent.get(id) ?? []);
    const counts = Map.groupBy(own, ({ handler }) => handler);
    return [
      ...silent.map((id) =>
        violation('silent', `${id} is not among the repeats of ${originals[0]}`),
      ),
      ...once
        .filter((handler) => !counts.has(handler))
        .map((handler) => violation('lost', `${what} for ${handler}`)),
      ...[...counts].flatMap(([handler, { length }]) => {
        if (length > 1) return [violation('doubled', `${what} for ${handler}: ${length} effects`)];
        const may = once.includes(handler) || optional.includes(handler);
        return may ? [] : [violation('invented', `${what} for ${handler}`)];
      }),
    ];
  });
}

/** A run that began before another one of its delivery worked on its effect has the lease: the other one must not commit. */
function checkFences({ effects, processes, until }: Observations): Violation[] {
  const runs = runIntervals(processes, until);
  const byRun = new Map(runs.map((one) => [one.run, one]));
  const byDelivery = Map.groupBy(runs, ({ handler, event }) => `${handler} ${event}`);
  return effects.flatMap(({ run, handler, event }) => {
    const stale = byRun.get(run);
    const newer = byDelivery
      .get(`${handler} ${event}`)
      ?.find(({ from }) => stale?.worked && from > stale.from && from < stale.worked);
    if (newer === undefined) return [];
    return [
      violation(
        'stale',
        `${run} wrote the effect of ${event} for ${handler} after ${newer.run} began`,
      ),
    ];
  });
}

function checkDeliveries({ events, stored, processes }: Observations): Violation[] {
  const poisoned = new Set(
    events.flatMap(({ id, poisoned }) => poisoned.map((handler) => `${id} ${handler}`)),
  );
  const alone = Map.groupBy(
    processes.flatMap(({ journal }) => journal.filter((entry) => entry.kind === 'alone')),
    ({ event, handler }) => `${event} ${handler}`,
  );
  return stored.flatMap(({ id, deliveries }) =>
    deliveries.flatMap(({ handler, state, attempts, history }) => {
      const outcomes = history.map(({ outcome, error }) => error ?? outcome).slice(-5);
      const what = `${id} for ${handler}: ${state}, ${attempts} attempts; ${outcomes.join('; ')}`;
      if (state === 'pending' || state === 'running') return [violation('stuck', what)];
      const poison = poisoned.has(`${id} ${handler}`);
      if (poison) return state === 'dead' ? [] : [violation('not-dead', what)];
      if (state === 'dead') return [violation('dead', what)];
      // The history has the last 20 attempts only.
      if (history.length >= 20) return [];
      const failed = history.filter(({ outcome }) => outcome === 'failed').length;
      const charged = attempts - failed - (state === 'done' ? 1 : 0);
      const allowed = alone.get(`${id} ${handler}`)?.length ?? 0;
      return charged > allowed ? [violation('charged', what)] : [];
    }),
  );
}

function checkRuns({ processes, faults, leaseMs, until }: Observations): Violation[] {
  const gaps = new Map(
    processes.map((record) => [record.name, heartbeatGaps(record, faults, leaseMs, until)]),
  );
  /** Whether the store may have declared a worker of the process dead while the process had a run of that time. */
  const leaseLost = (name: string, from: number, to: number): boolean =>
    gaps.get(name)!.some((gap) => gap.from + leaseMs <= to && gap.to >= from);
  const unexplained = overlaps(runIntervals(processes, until)).filter(
    ([first, second]) =>
      !leaseLost(first.process, first.from, second.from) &&
      // A process that stood still may begin what it claimed before.
      !leaseLost(second.process, second.from, second.from),
  );
  return [
    ...unexplained.map(([first, second]) =>
      violation(
        'overlap',
        `${second.run} (${second.event}) began ${Math.round(first.to - second.from)} ms before ` +
          `${first.run} (${first.event}) ended, ${first.handler} of ${first.transaction}`,
      ),
    ),
    ...[...gaps].flatMap(([name, found]) =>
      found
        .filter(({ explained }) => !explained)
        .map(({ from, to }) =>
          violation('heartbeat', `process ${name} sent none for ${Math.round(to - from)} ms`),
        ),
    ),
  ];
}

function violation(rule: Rule, detail: string): Violation {
  return { rule, detail };
}
