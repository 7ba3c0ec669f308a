import type { SeededRandom } from './seeded-random.js';

/**
 * What a handler does with an event before it commits its effect. All but `die` and `wait` only in the first attempt.
 *
 * - `slow`: takes 100 to 500 ms.
 * - `long`: runs for longer than the lease.
 * - `fail`: throws instead of committing.
 * - `wait`: waits until the run lets its process proceed.
 * - `late`: runs for longer than its time limit, and tries to commit after it.
 * - `hang`: never ends, and ignores its signal.
 * - `die`: kills its process, in every attempt.
 * - `die-after`: kills its process after the commit.
 * - `fail-after`: throws after the commit.
 */
export type HandlerAction =
  'slow' | 'long' | 'fail' | 'wait' | 'late' | 'hang' | 'die' | 'die-after' | 'fail-after';

/** An event of a run, and when its copies are sent. */
export interface PlannedEvent {
  readonly id: string;
  readonly eventType: string;
  readonly transactionId: string;
  /** What handlers do, by name; `null` for nothing unusual. */
  readonly actions: Readonly<Record<string, HandlerAction>> | null;
  /** Handlers that are to have one committed effect of it. */
  readonly handlers: readonly string[];
  /** Handlers whose delivery is to become dead. */
  readonly poisoned: readonly string[];
  /** `atMs` counts from the begin of the traffic or, of an event that is sent after the faults, from their end. */
  readonly copies: readonly { readonly atMs: number; readonly target: number }[];
  readonly afterFaults: boolean;
}

/** The event that one process runs and another one takes over, after all other faults. */
export const TAKEN_OVER = 'event-taken-over';

/** Event types of which each transaction has one; another event id is a duplicate. */
export const ONCE_PER_TRANSACTION = 'transaction.completed';

/** The handler that only the second version of the application has. */
export const NEW_HANDLER = 'points';

/** How many transactions have many events each. */
const HOT = 3;

/**
 * The events of a run, in order of their own time: duplicates, reordered copies, other event ids of one transaction, and
 * transactions with many events. They depend on nothing but the random numbers and the arguments.
 */
export function planEvents(
  random: SeededRandom,
  run: { readonly seconds: number; readonly processes: number; readonly perSecond: number },
): PlannedEvent[] {
  const events: PlannedEvent[] = [];
  const endMs = run.seconds * 1000;
  const copies = (atMs: number): PlannedEvent['copies'] => {
    const count = random.pick([1, 1, 1, 2, 2, 3]);
    return Array.from({ length: count }, (_, index) => ({
      // Late enough for others to overtake it.
      atMs:
        atMs + (random.chance(0.3) ? random.between(0, 400) : 0) + index * random.between(0, 900),
      target: random.between(0, run.processes - 1),
    }));
  };
  const add = (
    eventType: string,
    transactionId: string,
    atMs: number,
    handlers: readonly string[],
    actions: PlannedEvent['actions'],
    poisoned: readonly string[] = [],
  ): void => {
    const id = `event-${events.length}`;
    events.push({
      id,
      eventType,
      transactionId,
      actions,
      handlers,
      poisoned,
      copies: copies(atMs),
      afterFaults: false,
    });
  };
  const action = (hot = false): PlannedEvent['actions'] => {
    const drawn = random.next();
    if (drawn < 0.12) return { [random.pick(['book', 'audit'])]: 'slow' };
    if (drawn < 0.16) return { book: 'fail' };
    if (drawn < 0.18) return { audit: 'fail-after' };
    // Not on hot keys: others would wait for it. While it runs, its process may be stopped or blocked.
    if (drawn < 0.26 && !hot) return { book: 'long' };
    return null;
  };
  for (let atMs = 0; atMs < endMs; atMs += random.between(0, 2000 / run.perSecond)) {
    if (random.chance(0.25)) {
      add(
        'transaction.updated',
        `hot-${random.between(1, HOT)}`,
        atMs,
        ['audit', 'book'],
        action(true),
      );
      continue;
    }
    const transaction = `transaction-${events.length}`;
    const handlers = ['audit', 'book', 'notify'];
    add(ONCE_PER_TRANSACTION, transaction, atMs, handlers, action());
    if (random.chance(0.15)) add(ONCE_PER_TRANSACTION, transaction, atMs, handlers, null);
    if (random.chance(0.3)) {
      add('transaction.refunded', transaction, atMs + 100, ['audit', 'book'], action());
    }
  }
  const rare = (eventType: string, handler: string, what: HandlerAction, dead: boolean): void => {
    const atMs = random.between(endMs * 0.1, endMs * 0.6);
    const handlers = dead ? ['audit'] : ['audit', handler];
    const transaction = `transaction-${events.length}`;
    add(eventType, transaction, atMs, handlers, { [handler]: what }, dead ? [handler] : []);
  };
  events.push({
    id: TAKEN_OVER,
    // So that the new handler has it, too.
    eventType: ONCE_PER_TRANSACTION,
    transactionId: 'taken-over',
    actions: { book: 'wait' },
    handlers: ['audit', 'book', 'notify'],
    poisoned: [],
    copies: [{ atMs: 0, target: random.between(0, run.processes - 1) }],
    afterFaults: true,
  });
  const times = Math.max(1, Math.round(run.seconds / 20));
  for (let count = 0; count < times; count += 1) {
    rare('poison.found', 'poison', 'die', true);
    rare('limited.late', 'limited', 'late', false);
    rare('limited.hanging', 'limited', 'hang', false);
    rare('limited.crash', 'limited', 'die-after', false);
  }
  return events;
}
