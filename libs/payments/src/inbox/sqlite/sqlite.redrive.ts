import type { DeliverySelection, DeliveryState } from '../inbox-store.js';
import type { SqliteConnection } from './sqlite.connection.js';
import { laneOf, fromStored, toStored } from './sqlite.text.js';

export interface RedriveRequest {
  readonly selections: readonly DeliverySelection[];
  readonly force: boolean;
  readonly dueInMs: readonly number[];
}

interface EventRow {
  readonly seq: number;
  readonly ordering_key: string | null;
  readonly occurred_at: number;
  readonly received_at: number;
}

/** Makes deliveries due again, and adds those of handlers that the event was never delivered to. */
export function redrive(
  connection: SqliteConnection,
  request: RedriveRequest,
  now: number,
): number {
  let changed = 0;
  request.selections.forEach(({ company, id, handlers }, index) => {
    const event = connection.get<EventRow>(
      `SELECT seq, ordering_key, occurred_at, received_at FROM payments_inbox_event
       WHERE id = ? AND company = ? AND pruned = 0`,
      toStored(id),
      company,
    );
    if (event === undefined) return;
    const dueAt = now + (request.dueInMs[index] ?? 0);
    for (const handler of new Set(handlers)) {
      const state = connection.get<{ state: DeliveryState }>(
        'SELECT state FROM payments_inbox_delivery WHERE event_seq = ? AND handler = ?',
        event.seq,
        handler,
      )?.state;
      if (state === 'running' || (state === 'done' && !request.force)) continue;
      if (state === undefined) add(connection, company, event, handler, dueAt);
      else again(connection, event.seq, handler, dueAt);
      changed += 1;
    }
  });
  return changed;
}

/** Marks pending and dead deliveries skipped. */
export function skip(
  connection: SqliteConnection,
  { selections }: { readonly selections: readonly DeliverySelection[] },
  now: number,
): number {
  let skipped = 0;
  for (const { company, id, handlers } of selections) {
    for (const handler of new Set(handlers)) {
      skipped += connection.run(
        `UPDATE payments_inbox_delivery SET state = 'skipped', due_at = NULL, finished_at = ?
         WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = ? AND company = ?)
           AND handler = ? AND state IN ('pending', 'dead')`,
        now,
        toStored(id),
        company,
        handler,
      );
    }
  }
  return skipped;
}

function again(connection: SqliteConnection, seq: number, handler: string, dueAt: number): void {
  connection.run(
    `UPDATE payments_inbox_delivery
     SET attempts = iif(state = 'pending', attempts, 0), state = 'pending', due_at = ?, finished_at = NULL
     WHERE event_seq = ? AND handler = ?`,
    dueAt,
    seq,
    handler,
  );
}

function add(
  connection: SqliteConnection,
  company: string,
  event: EventRow,
  handler: string,
  dueAt: number,
): void {
  const { seq, ordering_key, occurred_at, received_at } = event;
  connection.run(
    `INSERT INTO payments_inbox_delivery
       (event_seq, handler, state, due_at, lane, occurred_at, received_at)
     VALUES (?, ?, 'pending', ?, ?, ?, ?)`,
    seq,
    handler,
    dueAt,
    laneOf(company, ordering_key === null ? null : fromStored(ordering_key)),
    occurred_at,
    received_at,
  );
  connection.run(
    'UPDATE payments_inbox_event SET deliveries = deliveries + 1, open = open + 1 WHERE seq = ?',
    seq,
  );
}
