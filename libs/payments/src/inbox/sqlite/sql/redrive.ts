import type { DeliverySelection, DeliveryState } from '../../inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { laneState } from './lanes.js';
import { fromStored, laneOf, toStored } from './text.js';

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

/** When a delivery becomes due, and whether its key is busy then. */
interface Due {
  readonly dueAt: number;
  readonly held: 0 | 1;
}

/** Makes deliveries due again, and adds those of handlers that the event was never delivered to. */
export function redrive(
  connection: SqliteConnection,
  request: RedriveRequest,
  { clock }: Times,
): number {
  let changed = 0;
  request.selections.forEach(({ company, id, handlers }, index) => {
    const event = findWhole(connection, company, id);
    if (event === undefined) return;
    const dueInMs = Math.round(request.dueInMs[index] ?? 0);
    for (const handler of new Set(handlers)) {
      const state = stateOf(connection, event.seq, handler);
      if (state === 'running' || (state === 'done' && !request.force)) continue;
      const lane = laneOf(event.company, event.ordering_key && fromStored(event.ordering_key));
      const { busy } = laneState(connection, handler, lane, clock);
      const due: Due = { dueAt: clock + dueInMs, held: busy && dueInMs <= 0 ? 1 : 0 };
      if (state === undefined) add(connection, event, handler, lane, due);
      else if (state === 'pending') bringForward(connection, event.seq, handler, due);
      else restart(connection, event.seq, handler, due);
      changed += 1;
    }
  });
  return changed;
}

function findWhole(
  connection: SqliteConnection,
  company: string,
  id: string,
): EventRow | undefined {
  return connection.get<EventRow>(
    `SELECT seq, company, ordering_key, occurred_at, received_at FROM payments_inbox_event
     WHERE id = ? AND company = ? AND pruned = 0`,
    [toStored(id), company],
  );
}

function stateOf(
  connection: SqliteConnection,
  seq: number,
  handler: string,
): DeliveryState | undefined {
  return connection.get<{ state: DeliveryState }>(
    'SELECT state FROM payments_inbox_delivery WHERE event_seq = ? AND handler = ?',
    [seq, handler],
  )?.state;
}

/** Never later than it is due already; one that is held stays held. */
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
  { dueAt, held }: Due,
): void {
  connection.run(
    `UPDATE payments_inbox_delivery
     SET state = 'pending', held = ?, attempts = 0, crashes = 0, due_at = ?, finished_at = NULL
     WHERE event_seq = ? AND handler = ?`,
    [held, dueAt, seq, handler],
  );
}

function add(
  connection: SqliteConnection,
  { seq, occurred_at, received_at }: EventRow,
  handler: string,
  lane: string | null,
  { dueAt, held }: Due,
): void {
  connection.run(
    `INSERT INTO payments_inbox_delivery (event_seq, handler, state, held, due_at, lane, occurred_at, received_at)
     VALUES (?, ?, 'pending', ?, ?, ?, ?, ?)`,
    [seq, handler, held, dueAt, lane, occurred_at, received_at],
  );
  connection.run('UPDATE payments_inbox_event SET undelivered = 0 WHERE seq = ?', [seq]);
}
