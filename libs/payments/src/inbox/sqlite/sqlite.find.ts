import type { SqliteConnection } from './sqlite.connection.js';
import { describe, EVENT_COLUMNS } from './sqlite.rows.js';
import type { EventAnswer, EventBody, EventRow } from './sqlite.rows.js';
import { toStored } from './sqlite.text.js';

/** The event of that id, whole. */
export function find(
  connection: SqliteConnection,
  { company, id }: { readonly company: string; readonly id: string },
): EventAnswer | undefined {
  const row = connection.get<EventRow & EventBody>(
    `SELECT ${EVENT_COLUMNS}, b.raw, b.headers FROM payments_inbox_event e
     LEFT JOIN payments_inbox_body b ON b.event_seq = e.seq WHERE e.id = ? AND e.company = ?`,
    toStored(id),
    company,
  );
  return row && describe(connection, row, row);
}
