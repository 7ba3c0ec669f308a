import type { DeliverySelection } from '../../inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { releaseNext } from './ordering.js';
import { toStored } from './text.js';

/** Marks pending and dead deliveries skipped. */
export function skip(
  connection: SqliteConnection,
  { selections }: { readonly selections: readonly DeliverySelection[] },
  { wall }: Times,
): number {
  let skipped = 0;
  for (const { company, id, handlers } of selections) {
    for (const handler of new Set(handlers)) {
      const row = connection.get<{ event_seq: number; state: string }>(
        `SELECT event_seq, state FROM payments_inbox_delivery
         WHERE event_seq = (SELECT seq FROM payments_inbox_event WHERE id = ? AND company = ?)
           AND handler = ? AND state IN ('pending', 'dead')`,
        [toStored(id), company, handler],
      );
      if (row === undefined) continue;
      connection.run(
        `UPDATE payments_inbox_delivery SET state = 'skipped', queue = NULL, crashes = 0, due_at = NULL, finished_at = ?
         WHERE event_seq = ? AND handler = ?`,
        [wall, row.event_seq, handler],
      );
      if (row.state === 'pending') releaseNext(connection, row.event_seq, handler);
      skipped += 1;
    }
  }
  return skipped;
}
