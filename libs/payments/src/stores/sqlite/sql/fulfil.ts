import type {
  EventSource,
  ExpectationState,
  FulfilledExpectation,
  IncomingEvent,
} from '../../../inbox/store/inbox-store.js';
import { OPEN, UNSCHEDULED } from '../../sql/expectations.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { fromStored, toStored } from '../../sql/sql-connection.js';

interface OpenRow {
  readonly seq: number;
  readonly reference: string;
  readonly state: ExpectationState;
  readonly transaction_id: string | null;
  readonly fulfilled_transaction: string | null;
}

/** Fulfils the open expectations of an event's transaction and reference with the stored event of the id `storedId`. */
export function fulfil(
  connection: SqliteConnection,
  { company, orderingKey, reference }: Pick<IncomingEvent, 'company' | 'orderingKey' | 'reference'>,
  storedId: string,
  times: Times,
): FulfilledExpectation[] {
  if (orderingKey === null && reference === null) return [];
  const key = orderingKey && toStored(orderingKey);
  const columns = 'seq, reference, state, transaction_id, fulfilled_transaction';
  const rows = connection.all<OpenRow>(
    `SELECT ${columns} FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_transaction
     WHERE transaction_id = ?1 AND company = ?3 AND ${OPEN}
     UNION SELECT ${columns} FROM payments_inbox_expectation INDEXED BY payments_inbox_expectation_reference
     WHERE reference = ?2 AND company = ?3 AND state <> 'cancelled'`,
    [key, reference && toStored(reference), company],
  );
  return rows.flatMap((row) => {
    const isOpen = row.state === 'waiting' || row.state === 'overdue';
    if (isOpen && (row.transaction_id === null || row.transaction_id === key)) {
      const by = fulfilWith(connection, row.seq, company, storedId, times);
      const transactionId = row.transaction_id && fromStored(row.transaction_id);
      return [{ reference: fromStored(row.reference), transactionId, by }];
    }
    const own = row.transaction_id ?? row.fulfilled_transaction;
    if (own !== null && own !== key) {
      connection.run('UPDATE payments_inbox_expectation SET other_event_id = ? WHERE seq = ?', [
        toStored(storedId),
        row.seq,
      ]);
    }
    return [];
  });
}

/** Fulfils an expectation with a stored event, if it is open. Returns how the event was received. */
export function fulfilWith(
  connection: SqliteConnection,
  seq: number,
  company: string,
  storedId: string,
  { wall }: Times,
): FulfilledExpectation['by'] {
  const event = connection.get<{
    readonly source: EventSource;
    readonly event_type: string;
    readonly ordering_key: string | null;
  }>(
    'SELECT source, event_type, ordering_key FROM payments_inbox_event WHERE id = ? AND company = ?',
    [toStored(storedId), company],
  )!;
  const { source, event_type, ordering_key } = event;
  connection.run(
    `UPDATE payments_inbox_expectation
     SET state = 'fulfilled', fulfilled_at = ?, fulfilled_by = ?, fulfilled_id = ?, fulfilled_type = ?,
       fulfilled_transaction = ?, ${UNSCHEDULED}
     WHERE seq = ? AND ${OPEN}`,
    [wall, source, toStored(storedId), event_type, ordering_key, seq],
  );
  return source;
}
