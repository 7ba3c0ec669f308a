import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { describe, EVENT_COLUMNS } from './rows.js';
import type { StoredEventMessage, EventBody, EventRow } from './rows.js';
import { toStored } from './text.js';

/** The event of that id, whole. */
export function find(
  connection: SqliteConnection,
  { company, id }: { readonly company: string; readonly id: string },
  times: Times,
): StoredEventMessage | undefined {
  const row = connection.get<EventRow & EventBody>(
    `SELECT ${EVENT_COLUMNS}, b.raw, b.headers FROM payments_inbox_event e
     LEFT JOIN payments_inbox_body b ON b.event_seq = e.seq WHERE e.id = ? AND e.company = ?`,
    [toStored(id), company],
  );
  return row && describe(connection, row, row, times);
}
