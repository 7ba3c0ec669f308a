import type { DeliverySelection, InboxStore } from '../../../inbox/store/inbox-store.js';
import { historyOf } from '../../sql/events.js';
import type { HistoryRow } from '../../sql/events.js';
import { fromStored, orderingOf, toStored } from '../../sql/sql-connection.js';
import type { SqliteSql } from '../thread/connection.js';
import { releaseNext } from './ordering.js';
import { fulfil } from './receive.js';

interface EventRow {
  readonly seq: number;
  readonly id: string;
  readonly company: string;
  readonly event_type: string;
  readonly ordering_key: string | null;
  readonly reference: string | null;
  readonly stale: 0 | 1;
}

/** Redrives deliveries. If the ordering key of a delivery is busy, the next claim marks the delivery as waiting. */
export function redrive(
  sql: SqliteSql,
  selections: readonly DeliverySelection[],
  { force, dueInMs, fulfils = [], unchangedSince }: Parameters<InboxStore['redrive']>[1],
): number {
  const { connection, times } = sql;
  const since = unchangedSince?.getTime() ?? Infinity;
  let changed = 0;
  for (const [index, { company, id, handlers }] of selections.entries()) {
    const event = connection.get<EventRow>(
      `SELECT seq, id, company, event_type, ordering_key, reference, stale FROM payments_inbox_event
       WHERE id = ? AND company = ? AND NOT pruned`,
      [toStored(id), company],
    );
    if (event === undefined) continue;
    const dueAt = times.clock + Math.round(dueInMs[index] ?? 0);
    for (const handler of new Set(handlers)) {
      const delivery = connection.get<HistoryRow>(
        `SELECT state, attempts, started_at, finished_at, history FROM payments_inbox_delivery
         WHERE event = ? AND handler = ?`,
        [event.seq, handler],
      );
      if (delivery === undefined) {
        if (!add(sql, event, handler, dueAt, fulfils)) continue;
      } else {
        const { state, started_at, finished_at } = delivery;
        if (state === 'running' || (state === 'done' && !force)) continue;
        if (Math.max(started_at ?? 0, finished_at ?? 0) > since) continue;
        // A pending delivery becomes due earlier, never later, and may continue to wait.
        connection.run(
          `UPDATE payments_inbox_delivery SET state = 'pending', queue = iif(state = 'pending', queue, 'due'),
             attempts = iif(state = 'pending', attempts, 0), due_at = min(coalesce(due_at, ?1), ?1), finished_at = NULL,
             history = ?2 WHERE event = ?3 AND handler = ?4`,
          [dueAt, JSON.stringify(historyOf(delivery)), event.seq, handler],
        );
      }
      changed += 1;
    }
  }
  sql.wakes ||= changed > 0;
  return changed;
}

/** Adds a delivery to an event. Returns `false` if another event counts as the event of the transaction. */
function add(
  sql: SqliteSql,
  { seq, id, company, event_type, ordering_key, reference, stale }: EventRow,
  handler: string,
  dueAt: number,
  fulfils: readonly string[],
): boolean {
  const { connection } = sql;
  const anyOther = 'SELECT 1 FROM payments_inbox_delivery WHERE event = ? LIMIT 1';
  if (stale === 1 && connection.get(anyOther, [seq]) === undefined) {
    // From now on, the stale event counts as the event of its transaction, and fulfils expectations as a new event does
    // on receipt.
    const update = 'UPDATE OR IGNORE payments_inbox_event SET stale = 0 WHERE seq = ?';
    if (connection.run(update, [seq]) === 0) return false;
    if (fulfils.includes(fromStored(event_type))) {
      const orderingKey = ordering_key && fromStored(ordering_key);
      const keys = { company, orderingKey, reference: reference && fromStored(reference) };
      fulfil(sql, keys, fromStored(id));
    }
  }
  connection.run(
    `INSERT INTO payments_inbox_delivery (event, handler, state, queue, due_at, ordering)
     VALUES (?, ?, 'pending', 'due', ?, ?)`,
    [seq, handler, dueAt, orderingOf(company, ordering_key)],
  );
  connection.run('UPDATE payments_inbox_event SET unhandled = 0 WHERE seq = ?', [seq]);
  return true;
}

export function skip(sql: SqliteSql, selections: readonly DeliverySelection[]): number {
  const { connection, times } = sql;
  let skipped = 0;
  for (const { company, id, handlers } of selections) {
    for (const handler of new Set(handlers)) {
      const row = connection.get<{ event: number; state: string }>(
        `SELECT event, state FROM payments_inbox_delivery
         WHERE event = (SELECT seq FROM payments_inbox_event WHERE id = ? AND company = ?)
           AND handler = ? AND state IN ('pending', 'dead')`,
        [toStored(id), company, handler],
      );
      if (row === undefined) continue;
      connection.run(
        `UPDATE payments_inbox_delivery SET state = 'skipped', queue = NULL, crashes = 0, due_at = NULL, finished_at = ?
         WHERE event = ? AND handler = ?`,
        [times.wall, row.event, handler],
      );
      if (row.state === 'pending') releaseNext(connection, row.event, handler);
      skipped += 1;
    }
  }
  sql.wakes ||= skipped > 0;
  return skipped;
}
