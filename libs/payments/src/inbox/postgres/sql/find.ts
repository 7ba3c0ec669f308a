import type { StoredEvent } from '../../store/inbox-store.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { toEvent, wholeColumns } from './stored-rows.js';
import { toStored } from './stored-text.js';

/** The event of that id, as a whole. */
export async function find(
  source: ConnectionSource,
  schema: string,
  company: string,
  id: string,
): Promise<StoredEvent | undefined> {
  const text = `SELECT ${wholeColumns(schema)} FROM ${schema}.event e WHERE e.company = $1 AND e.id = $2`;
  const [row] = await source.query(text, [toStored(company), toStored(id)]);
  return row && toEvent(row);
}
