import type { DeliverySelection } from '../../../inbox/store/inbox-store.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { fulfil } from './fulfil.js';
import { isOrderingBusy } from './ordering.js';
import { fromStored, toStored } from '../../sql/stored-text.js';
import { orderingOf } from './stored-rows.js';
import { historyOf } from '../../sql/events.js';
import type { HistoryRow } from '../../sql/events.js';

export interface RedriveRequest {
  readonly selections: readonly DeliverySelection[];
  readonly force: boolean;
  readonly dueInMs: readonly number[];
  /** The event types that fulfil expectations. */
  readonly fulfils?: readonly string[];
}

interface EventRow {
  readonly seq: number;
  readonly id: string;
  readonly company: string;
  readonly event_type: string;
  readonly ordering_key: string | null;
  readonly reference: string | null;
  readonly stale: 0 | 1;
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
  times: Times,
): number {
  const { clock } = times;
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
      const busy = isOrderingBusy(connection, handler, ordering, clock);
      const due: Due = { dueAt: clock + dueInMs, queue: busy && dueInMs <= 0 ? 'waiting' : 'due' };
      if (event.stale === 1 && delivery === undefined && !hasDeliveries(connection, event.seq)) {
        if (!refresh(connection, event, request.fulfils ?? [], times)) continue;
      }
      if (delivery === undefined) add(connection, event, handler, ordering, due);
      else if (state === 'pending') bringForward(connection, event.seq, handler, due);
      else restart(connection, event.seq, handler, JSON.stringify(historyOf(delivery)), due);
      changed += 1;
    }
  });
  return changed;
}

function findUnpruned(
  connection: SqliteConnection,
  company: string,
  id: string,
): EventRow | undefined {
  return connection.get<EventRow>(
    `SELECT seq, id, company, event_type, ordering_key, reference, stale, received_at
     FROM payments_inbox_event WHERE id = ? AND company = ? AND pruned = 0`,
    [toStored(id), company],
  );
}

function hasDeliveries(connection: SqliteConnection, seq: number): boolean {
  const select = 'SELECT 1 FROM payments_inbox_delivery WHERE event = ? LIMIT 1';
  return connection.get(select, [seq]) !== undefined;
}

/**
 * Makes a stale event count as the event of its transaction: it fulfils expectations as on receipt. Returns
 * `false` if another event counts as the event of the transaction.
 */
function refresh(
  connection: SqliteConnection,
  event: EventRow,
  fulfils: readonly string[],
  times: Times,
): boolean {
  const changed = connection.run(
    'UPDATE OR IGNORE payments_inbox_event SET stale = 0 WHERE seq = ?',
    [event.seq],
  );
  if (changed === 0) return false;
  if (!fulfils.includes(fromStored(event.event_type))) return true;
  const { company, ordering_key, reference } = event;
  const orderingKey = ordering_key && fromStored(ordering_key);
  fulfil(
    connection,
    { company, orderingKey, reference: reference && fromStored(reference) },
    fromStored(event.id),
    times,
  );
  return true;
}

function findDelivery(
  connection: SqliteConnection,
  seq: number,
  handler: string,
): HistoryRow | undefined {
  return connection.get<HistoryRow>(
    `SELECT state, attempts, started_at, finished_at, history FROM payments_inbox_delivery
     WHERE event = ? AND handler = ?`,
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
    'UPDATE payments_inbox_delivery SET due_at = min(due_at, ?) WHERE event = ? AND handler = ?',
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
     WHERE event = ? AND handler = ?`,
    [queue, dueAt, history, seq, handler],
  );
}

function add(
  connection: SqliteConnection,
  { seq, received_at }: EventRow,
  handler: string,
  ordering: Uint8Array | null,
  { dueAt, queue }: Due,
): void {
  connection.run(
    `INSERT INTO payments_inbox_delivery (event, handler, state, queue, due_at, ordering, received_at)
     VALUES (?, ?, 'pending', ?, ?, ?, ?)`,
    [seq, handler, queue, dueAt, ordering, received_at],
  );
  connection.run('UPDATE payments_inbox_event SET unhandled = 0 WHERE seq = ?', [seq]);
}
