import type { Lease } from '../../store/inbox-store.js';
import type { SqliteConnection } from '../thread/connection.js';
import { COUNTS_ONCE, NOT_ONCE } from './schema.js';

/** The state of all deliveries that have the same company, handler and ordering key. */
export interface OrderingState {
  /** Whether a new delivery may run at once: no other delivery of the key runs, or is pending and due. */
  readonly free: boolean;
  /**
   * Whether a due delivery must wait for its turn: another delivery of the key runs or is claimable now. When an
   * attempt of the key ends, the next delivery becomes claimable. So a claim reads one delivery of a key, not its whole
   * backlog. Suspects do not count.
   */
  readonly busy: boolean;
}

/** Reads the state of an ordering key; `ordering` is its hash. Reads one index entry of each queue of the key. */
export function orderingState(
  connection: SqliteConnection,
  handler: string,
  ordering: Uint8Array | null,
  clock: number,
): OrderingState {
  if (ordering === null) return { free: true, busy: false };
  const due = (queue: string) =>
    `EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_ordering
       WHERE state = 'pending' AND handler = ?1 AND ordering = ?2 AND queue = '${queue}' AND due_at <= ?3)`;
  const { busy, suspect } = connection.get<{ busy: 0 | 1; suspect: 0 | 1 }>(
    `SELECT ${RUNNING} OR ${due('waiting')} OR ${due('due')} AS busy, ${due('suspect')} AS suspect`,
    [handler, ordering, clock],
  )!;
  return { free: busy === 0 && suspect === 0, busy: busy === 1 };
}

/** SQL: whether a delivery of the handler `?1` and the ordering key `?2` runs. */
const RUNNING = `EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
  WHERE state = 'running' AND handler = ?1 AND ordering = ?2)`;

/** Whether a delivery of that ordering key runs. */
export function isOrderingRunning(
  connection: SqliteConnection,
  handler: string,
  ordering: Uint8Array | null,
): boolean {
  if (ordering === null) return false;
  const { running } = connection.get<{ running: 0 | 1 }>(`SELECT ${RUNNING} AS running`, [
    handler,
    ordering,
  ])!;
  return running === 1;
}

/** See `InboxStore.newerHandled`. */
export function newerHandled(
  connection: SqliteConnection,
  { lease: { seq, handler } }: { readonly lease: Pick<Lease, 'seq' | 'handler'> },
): boolean {
  const event = connection.get(
    'SELECT ordering_key, company, occurred_at FROM payments_inbox_event WHERE seq = ?',
    [seq],
  );
  if (event === undefined) return false;
  const newerIn = (index: string, condition: string) =>
    `EXISTS (SELECT 1 FROM payments_inbox_event e INDEXED BY payments_inbox_event_${index}
       WHERE ordering_key = ?1 AND ${condition} AND company = ?2 AND occurred_at > ?3
         AND (pruned OR EXISTS (SELECT 1 FROM payments_inbox_delivery d
           WHERE d.event_seq = e.seq AND d.handler = ?4 AND d.state = 'done')))`;
  const { newer } = connection.get<{ newer: 0 | 1 }>(
    `SELECT ${newerIn('once', COUNTS_ONCE)} OR ${newerIn('transaction', NOT_ONCE)} AS newer`,
    [event['ordering_key'], event['company'], event['occurred_at'], handler],
  )!;
  return newer === 1;
}

/**
 * Makes the next waiting delivery of an ordering key claimable, if no delivery of the key runs. Call it after the
 * delivery `seq` of the key was settled, freed or skipped. The next delivery is the earliest due and keeps its due time,
 * so it stays before deliveries of the key that were received later. Returns whether there was a waiting delivery.
 */
export function releaseNext(connection: SqliteConnection, seq: number, handler: string): boolean {
  const next = connection.get<{ event_seq: number }>(
    `SELECT next.event_seq FROM payments_inbox_delivery ended
       CROSS JOIN payments_inbox_delivery next INDEXED BY payments_inbox_delivery_ordering
     WHERE ended.event_seq = ?1 AND ended.handler = ?2 AND next.handler = ?2 AND next.ordering = ended.ordering
       AND next.state = 'pending' AND next.queue = 'waiting'
       AND NOT EXISTS (SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
         WHERE state = 'running' AND handler = ?2 AND ordering = ended.ordering)
     ORDER BY next.due_at, next.event_seq LIMIT 1`,
    [seq, handler],
  );
  if (next === undefined) return false;
  connection.run(
    "UPDATE payments_inbox_delivery SET queue = 'due' WHERE event_seq = ? AND handler = ?",
    [next.event_seq, handler],
  );
  return true;
}
