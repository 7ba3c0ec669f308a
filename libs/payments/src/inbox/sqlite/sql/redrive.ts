import { POLL_HANDLER } from '../../store/expectation-store.js';
import type { DeliverySelection } from '../../store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import type { ExpectationName } from './expectations.js';
import { orderingState } from './ordering.js';
import { NO_EXPECTATION, UNDELIVERED } from './schema.js';
import { fromStored, historyOf, orderingOf, toStored } from './stored-rows.js';
import type { HistoryRow } from './stored-rows.js';

export interface RedriveRequest {
  readonly selections: readonly DeliverySelection[];
  readonly force: boolean;
  readonly dueInMs: readonly number[];
}

interface EventRow {
  readonly seq: number;
  readonly company: string;
  readonly ordering_key: string | null;
  readonly occurred_at: number;
  readonly received_at: number;
}

/** When a delivery becomes due, and whether it then waits for its turn. */
interface Due {
  readonly dueAt: number;
  readonly queue: 'due' | 'waiting';
}

/** Makes deliveries due again. Adds a delivery if the event has none for the handler. */
export function redrive(
  connection: SqliteConnection,
  request: RedriveRequest,
  { clock }: Times,
): number {
  let changed = 0;
  request.selections.forEach(({ company, id, handlers }, index) => {
    const event = findUnpruned(connection, company, id);
    if (event === undefined) return;
    const dueInMs = Math.round(request.dueInMs[index] ?? 0);
    for (const handler of new Set(handlers)) {
      const delivery = findDelivery(connection, event.seq, handler);
      const state = delivery?.state;
      if (state === 'running' || (state === 'done' && !request.force)) continue;
      const key = event.ordering_key;
      const ordering = orderingOf(event.company, key === null ? null : fromStored(key));
      const { busy } = orderingState(connection, handler, ordering, clock);
      const due: Due = { dueAt: clock + dueInMs, queue: busy && dueInMs <= 0 ? 'waiting' : 'due' };
      if (delivery === undefined) add(connection, event, handler, ordering, due);
      else if (state === 'pending') bringForward(connection, event.seq, handler, due);
      else restart(connection, event.seq, handler, historyOf(delivery), due);
      changed += 1;
    }
  });
  return changed;
}

/** Makes polls due, except running ones and those of cancelled expectations; returns how many. */
export function pollNow(
  connection: SqliteConnection,
  request: { readonly selections: readonly ExpectationName[]; readonly dueInMs: readonly number[] },
  { clock }: Times,
): number {
  return request.selections.reduce((changed, { company, reference }, index) => {
    const dueAt = clock + Math.round(request.dueInMs[index] ?? 0);
    return (
      changed +
      connection.run(
        `UPDATE payments_inbox_delivery
         SET state = 'pending', queue = iif(state = 'pending', queue, 'due'), attempts = 0, finished_at = NULL,
           due_at = min(coalesce(due_at, ?1), ?1)
         WHERE handler = '${POLL_HANDLER}' AND state <> 'running' AND event_seq = (
           SELECT event_seq FROM payments_inbox_expectation
           WHERE reference = ?2 AND company = ?3 AND state <> 'cancelled')`,
        [dueAt, toStored(reference), company],
      )
    );
  }, 0);
}

function findUnpruned(
  connection: SqliteConnection,
  company: string,
  id: string,
): EventRow | undefined {
  return connection.get<EventRow>(
    `SELECT seq, company, ordering_key, occurred_at, received_at FROM payments_inbox_event
     WHERE id = ? AND company = ? AND pruned = 0 AND ${NO_EXPECTATION}`,
    [toStored(id), company],
  );
}

function findDelivery(
  connection: SqliteConnection,
  seq: number,
  handler: string,
): HistoryRow | undefined {
  return connection.get<HistoryRow>(
    `SELECT state, attempts, started_at, finished_at, history FROM payments_inbox_delivery
     WHERE event_seq = ? AND handler = ?`,
    [seq, handler],
  );
}

/** Makes a pending delivery due earlier, never later. A waiting delivery continues to wait. */
function bringForward(
  connection: SqliteConnection,
  seq: number,
  handler: string,
  { dueAt }: Due,
): void {
  connection.run(
    'UPDATE payments_inbox_delivery SET due_at = min(due_at, ?) WHERE event_seq = ? AND handler = ?',
    [dueAt, seq, handler],
  );
}

function restart(
  connection: SqliteConnection,
  seq: number,
  handler: string,
  history: string,
  { dueAt, queue }: Due,
): void {
  connection.run(
    `UPDATE payments_inbox_delivery
     SET state = 'pending', queue = ?, attempts = 0, crashes = 0, due_at = ?, finished_at = NULL, history = ?
     WHERE event_seq = ? AND handler = ?`,
    [queue, dueAt, history, seq, handler],
  );
}

function add(
  connection: SqliteConnection,
  { seq, occurred_at, received_at }: EventRow,
  handler: string,
  ordering: Uint8Array | null,
  { dueAt, queue }: Due,
): void {
  connection.run(
    `INSERT INTO payments_inbox_delivery (event_seq, handler, state, queue, due_at, ordering, occurred_at, received_at)
     VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)`,
    [seq, handler, queue, dueAt, ordering, occurred_at, received_at],
  );
  connection.run(
    `UPDATE payments_inbox_event SET undelivered = ${UNDELIVERED.none} WHERE seq = ?`,
    [seq],
  );
}
