import type { SqliteConnection } from './sqlite.connection.js';
import { describe, EVENT_COLUMNS } from './sqlite.rows.js';
import type { EventRow, EventAnswer } from './sqlite.rows.js';
import { toStored } from './sqlite.text.js';

/** The event of that id, with its body. */
export function find(
  connection: SqliteConnection,
  { company, id }: { readonly company: string; readonly id: string },
): EventAnswer | undefined {
  const row = connection.get<EventRow & { raw: Uint8Array | null }>(
    `SELECT ${EVENT_COLUMNS}, b.raw FROM payments_inbox_event e
     LEFT JOIN payments_inbox_body b ON b.event_seq = e.seq WHERE e.id = ? AND e.company = ?`,
    toStored(id),
    company,
  );
  return row && describe(connection, row, row.raw);
}
