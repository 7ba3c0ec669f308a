import type { ConnectionSource } from '../connection/connection-source.js';
import { toStored } from './stored-text.js';

/** Stops or restarts the claims of a handler, or of all for `*`. */
export async function pause(
  source: ConnectionSource,
  schema: string,
  handler: string,
  paused: boolean,
): Promise<void> {
  const text = paused
    ? `INSERT INTO ${schema}.pause (handler) VALUES ($1) ON CONFLICT DO NOTHING`
    : `DELETE FROM ${schema}.pause WHERE handler = $1`;
  await source.query(text, [toStored(handler)]);
}
