// SQL: conditions of partial indexes. A statement repeats the condition of the index that it reads.

/** SQL: whether a delivery `d` failed and is pending, running or dead. Receives do not write the index of these. */
export const HAS_FAILED = `d.last_error IS NOT NULL AND d.state IN ('pending', 'running', 'dead')`;

/** SQL: whether a delivery `d` is pending, dead or skipped. Events that are handled at once do not write the index of these. */
export const UNDONE = "d.state NOT IN ('done', 'running')";

/** SQL: whether an event counts as the only one of its transaction and type. Its transaction is then in `event_once`. */
export const countsOnce = (event: string): string => `${event}.once AND NOT ${event}.stale`;

/** SQL: whether the transaction of an event is in `event_transaction`: it has one, and is not in `event_once`. */
export const notOnce = (event: string): string =>
  `${event}.ordering_key IS NOT NULL AND (NOT ${event}.once OR ${event}.stale)`;

/** A condition without the alias of its table, as in the statement that creates its index. */
export const unaliased = (condition: string): string => condition.replace(/\b[de]\./g, '');
