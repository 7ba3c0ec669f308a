import type { SeededRandom } from './seeded-random.js';

/**
 * An unusual behaviour of a handler for one event. Actions before the commit take place in the first attempt only, except
 * `crash` and `wait`, which take place in each attempt.
 *
 * - `slow`: takes 100 to 500 ms.
 * - `outlast-lease`: runs for longer than the lease.
 * - `fail`: throws instead of committing.
 * - `wait`: waits until the chaos runner lets the process proceed.
 * - `exceed-time-limit`: runs for longer than its time limit, then tries to commit.
 * - `hang`: never ends, and ignores its signal.
 * - `crash`: kills its process.
 * - `crash-after-commit`: kills its process after the commit.
 * - `fail-after-commit`: throws after the commit.
 */
export type HandlerAction =
  | 'slow'
  | 'outlast-lease'
  | 'fail'
  | 'wait'
  | 'exceed-time-limit'
  | 'hang'
  | 'crash'
  | 'crash-after-commit'
  | 'fail-after-commit';

/** An event of a chaos run, and the times at which its copies are sent. */
export interface PlannedEvent {
  readonly id: string;
  readonly eventType: string;
  readonly transactionId: string;
  /** The reference of the payment, if the event has one. */
  readonly reference?: string;
  /** Unusual behaviour, by handler name; `null` if there is none. */
  readonly actions: Readonly<Record<string, HandlerAction>> | null;
  /** Handlers that must commit exactly one effect of the event. */
  readonly handlers: readonly string[];
  /** Handlers whose delivery must become a dead letter, because the event kills the process in each attempt. */
  readonly poisoned: readonly string[];
  /** When each copy is sent, in milliseconds after sending begins, and the number of the process that receives it. */
  readonly copies: readonly { readonly atMs: number; readonly target: number }[];
}

/** Event type that is handled once per transaction: an event with another id for the same transaction is a duplicate. */
export const ONCE_PER_TRANSACTION = 'transaction.completed';

/** The handler that only the second version of the application has. */
export const NEW_HANDLER = 'points';

/** Number of ordering keys with many events each. */
const HOT_KEYS = 3;

/** Maximum number of events of a run for each rare behaviour. */
const MAX_RARE_EVENTS = 8;

/**
 * The event of the takeover: it is sent after all other events are handled. One process runs its handler `book` and is
 * stopped until another process has taken the delivery over.
 */
export const TAKEOVER_EVENT: PlannedEvent = {
  id: 'event-taken-over',
  // The new handler receives this type, too.
  eventType: ONCE_PER_TRANSACTION,
  transactionId: 'taken-over',
  actions: { book: 'wait' },
  handlers: ['audit', 'book', 'notify'],
  poisoned: [],
  copies: [{ atMs: 0, target: 0 }],
};

/**
 * The other events of a chaos run: duplicates, reordered copies, several event ids of one transaction, and transactions
 * with many events. They depend only on the random numbers and the arguments.
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
      // Some copies are late enough for other events to overtake them.
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
    });
  };
  const action = (hot = false): PlannedEvent['actions'] => {
    const drawn = random.next();
    if (drawn < 0.12) return { [random.pick(['book', 'audit'])]: 'slow' };
    if (drawn < 0.16) return { book: 'fail' };
    if (drawn < 0.18) return { audit: 'fail-after-commit' };
    // A hot key gets no long attempt, because many deliveries would wait while faults stop or block the process.
    if (drawn < 0.26 && !hot) return { book: 'outlast-lease' };
    return null;
  };
  for (let atMs = 0; atMs < endMs; atMs += random.between(0, 2000 / run.perSecond)) {
    if (random.chance(0.25)) {
      add(
        'transaction.updated',
        `hot-${random.between(1, HOT_KEYS)}`,
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
  const rare = (eventType: string, handler: string, action: HandlerAction, dead: boolean): void => {
    const atMs = random.between(endMs * 0.1, endMs * 0.6);
    const handlers = dead ? ['audit'] : ['audit', handler];
    const transaction = `transaction-${events.length}`;
    add(eventType, transaction, atMs, handlers, { [handler]: action }, dead ? [handler] : []);
  };

  // A delivery that may have crashed a process runs alone, after a recovery. More such deliveries would take longer
  // than the run.
  const times = Math.min(MAX_RARE_EVENTS, Math.max(1, Math.round(run.seconds / 20)));
  for (let count = 0; count < times; count += 1) {
    rare('poison.found', 'poison', 'crash', true);
    rare('limited.late', 'limited', 'exceed-time-limit', false);
    rare('limited.hanging', 'limited', 'hang', false);
    rare('limited.crash', 'limited', 'crash-after-commit', false);
  }
  return events;
}
