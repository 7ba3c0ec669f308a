import { countsOnce, notOnce } from '../../sql/sql-connection.js';
import type { StoreLayout } from '../../sql/sql-connection.js';

/** SQL: {@link countsOnce} and {@link notOnce} without an alias. */
export const [COUNTS_ONCE, NOT_ONCE] = [countsOnce(''), notOnce('')];

/** One index has all queues of deliveries. */
export const LAYOUT: StoreLayout = {
  bodies: `(SELECT e.*, b.raw, b.headers FROM payments_inbox_event e
    LEFT JOIN payments_inbox_body b ON b.event = e.seq)`,
  pruned: 'e.pruned',
  tombstone: 'pruned = 1',
  bodyTables: ['body'],
  queues: (['waiting', 'due', 'suspect', 'dead'] as const).map((queue) => ({
    state: queue === 'dead' ? 'dead' : 'pending',
    index: 'queue',
    condition: `d.queue = '${queue}'`,
    indexed: 'd.queue IS NOT NULL',
  })),
  unqueued: 'queue = NULL',
};
