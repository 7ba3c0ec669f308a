/** The parts of the tables that SQLite and PostgreSQL write differently. */
export interface TableDialect {
  /** The name of a table. */
  readonly table: (name: string) => string;
  /** The name of a new index. */
  readonly index: (name: string) => string;
  /** A primary key of numbers. No number is used twice, because leases contain it. */
  readonly numbers: string;
  readonly text: string;
  readonly integer: string;
  readonly boolean: string;
  readonly bytes: string;
  /** The id of a worker. */
  readonly uuid: string;
  /** The hash of company and ordering key. */
  readonly hash: string;
  /** A JSON text that is never changed. */
  readonly json: string;
  /** A JSON array to which statements add elements. */
  readonly jsonArray: string;
  /** The number of the event of a delivery. */
  readonly eventNumber: string;
  /** Further columns of an event. */
  readonly eventColumns: string;
  /** The columns of a delivery that decide whether a claim finds the delivery. */
  readonly queueColumns: string;
  /** Whether an event is a tombstone, without body and deliveries. */
  readonly pruned: string;
  /** The columns of the index `event_once`, which contains the one event that counts for each transaction and type. */
  readonly once: string;
  /**
   * The columns of the index of the running deliveries: the ordering key and the handler, in the order in which the
   * statements of the database compare them.
   */
  readonly orderingAndHandler: string;
  /** The part of a text that an index contains. */
  readonly indexed: (text: string) => string;
  /**
   * The last column of an index whose entries must be in the order of `seq`; empty if the database has every index in
   * this order.
   */
  readonly inOrder: string;
  /** The text after the columns of a table. */
  readonly options: string;
  /** The text after the columns of a table that is read by its primary key, if this key is not a number. */
  readonly optionsOfKeyed: string;
}

/**
 * Returns the SQL of the tables of version 1, without the table `meta` and without the tables that only one database
 * has. Times are in milliseconds since the epoch. Most indexes of deliveries are partial, because an index without done
 * deliveries stays small, for any number of done deliveries in the table.
 */
export function tables1(dialect: TableDialect): string {
  const { table, index, text, integer, boolean, inOrder, indexed } = dialect;
  const [event, delivery, expectation] = ['event', 'delivery', 'expectation'].map(table);
  return `
  CREATE TABLE ${event} (
    seq ${dialect.numbers},
    company ${text} NOT NULL,
    id ${text} NOT NULL,
    event_type ${text} NOT NULL,
    occurred_at ${integer} NOT NULL,
    received_at ${integer} NOT NULL, -- wall clock
    ordering_key ${text},
    reference ${text}, -- this column, amount and currency are the summary; NULL in a tombstone
    amount ${text},
    currency ${text},
    once ${boolean} NOT NULL DEFAULT false, -- the type is handled once per transaction, and the event has a transaction
    digest ${dialect.bytes} NOT NULL, -- SHA-256 of the body, which detects a conflicting copy of a tombstone too
    stale ${boolean} NOT NULL, -- the event was too old when it was received, and was not redriven
    unhandled ${boolean} NOT NULL, -- the event has no delivery although its type needs one
    source ${text} NOT NULL DEFAULT 'webhook', -- webhook, poll or overdue
    repeats ${dialect.jsonArray}, -- other events of its transaction: [[id, time], …], the oldest first
    ${dialect.eventColumns}
  ) ${dialect.options};
  -- The columns have this order so that a search finds an id of any company.
  CREATE UNIQUE INDEX ${index('event_id')} ON ${event} (id, company);
  -- Each event with a transaction is in one of the next two indexes, so a look-up of a transaction reads both.
  CREATE UNIQUE INDEX ${index('event_once')} ON ${event} (${dialect.once}) WHERE once AND NOT stale;
  CREATE INDEX ${index('event_transaction')} ON ${event} (${indexed('ordering_key')})
    WHERE ordering_key IS NOT NULL AND (NOT once OR stale);
  CREATE INDEX ${index('event_reference')} ON ${event} (${indexed('lower(reference)')}) WHERE reference IS NOT NULL;
  CREATE INDEX ${index('event_tombstone')} ON ${event} (received_at${inOrder}) WHERE ${dialect.pruned};
  CREATE INDEX ${index('event_unhandled')} ON ${event} (stale${inOrder}) WHERE unhandled;

  -- The events up to pruned_to of meta that could not be pruned.
  CREATE TABLE ${table('kept')} (event ${integer} PRIMARY KEY) ${dialect.options};

  CREATE TABLE ${delivery} (
    event ${dialect.eventNumber},
    handler ${text} NOT NULL,
    state ${text} NOT NULL CHECK (state IN ('pending', 'running', 'done', 'dead', 'skipped')),
    ${dialect.queueColumns}
    crashes integer NOT NULL DEFAULT 0, -- consecutive lost attempts; with a number above 0, the delivery is a suspect
    attempts integer NOT NULL DEFAULT 0,
    token ${integer} NOT NULL DEFAULT 0, -- fencing token of the last claim
    worker ${dialect.uuid} CHECK ((worker IS NULL) = (state <> 'running')),
    due_at ${integer} CHECK ((due_at IS NULL) = (state <> 'pending')), -- store clock
    started_at ${integer}, -- start of the last attempt, wall clock
    failed_at ${integer}, -- end of the last attempt that failed or was lost
    finished_at ${integer}, -- when the delivery became done, dead or skipped
    last_error ${text},
    frames ${text}, -- the application's own stack frames of last_error
    ordering ${dialect.hash},
    history ${dialect.jsonArray}, -- of the type HistoryEntry, without the attempt that made the delivery done
    PRIMARY KEY (event, handler)
  ) ${dialect.optionsOfKeyed};
  -- At most one delivery of an ordering key and handler runs.
  CREATE UNIQUE INDEX ${index('delivery_running')} ON ${delivery} (${dialect.orderingAndHandler})
    WHERE state = 'running';
  -- For lists. Because the index begins with the worker, which is NULL, it is the only index in the order of these
  -- statements. Therefore, the planner of PostgreSQL uses it for any statistics.
  CREATE INDEX ${index('delivery_undone')} ON ${delivery} (worker, state, event) WHERE state NOT IN ('done', 'running');
  CREATE INDEX ${index('delivery_failed')} ON ${delivery} (event)
    WHERE last_error IS NOT NULL AND state IN ('pending', 'running', 'dead');

  CREATE TABLE ${expectation} (
    seq ${dialect.numbers},
    company ${text} NOT NULL,
    reference ${text} NOT NULL,
    transaction_id ${text},
    state ${text} NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'fulfilled', 'overdue', 'cancelled')),
    created_at ${integer} NOT NULL, -- wall clock
    created_clock ${integer} NOT NULL, -- the same time by the store clock
    due_in_ms ${integer}, -- after the creation
    schedule ${text} NOT NULL, -- a JSON array of delays in milliseconds
    next_poll_at ${integer}, -- store clock; while a poll is leased: the end of the lease
    leased ${boolean} NOT NULL DEFAULT false,
    token ${integer} NOT NULL DEFAULT 0, -- increases with each lease
    lost_polls integer NOT NULL DEFAULT 0, -- the number of consecutive leases that were not settled
    polls integer NOT NULL DEFAULT 0,
    last_poll_at ${integer},
    last_result ${text} CHECK ((last_result IS NULL) = (last_poll_at IS NULL)),
    last_detail ${text},
    fulfilled_at ${integer} CHECK ((fulfilled_at IS NOT NULL) = (state = 'fulfilled')),
    fulfilled_by ${text}, -- source of the event
    fulfilled_id ${text}, -- id of the event
    fulfilled_type ${text},
    fulfilled_transaction ${text}, -- ordering key of the event
    cancelled_at ${integer} CHECK ((cancelled_at IS NOT NULL) = (state = 'cancelled')),
    cancelled_by ${text}, -- name of the operator
    cancel_note ${text},
    contradiction ${text},
    other_event_id ${text}, -- id of an event of another transaction with this reference
    request ${text} CHECK (request IN ('running', 'answered', 'unknown', 'accepted')), -- NULL if there was no request
    request_token ${integer} NOT NULL DEFAULT 0, -- increases with each request
    request_until ${integer} -- store clock: the end of the lease of the last request
  ) ${dialect.options};
  CREATE UNIQUE INDEX ${index('expectation_reference')} ON ${expectation} (reference, company);
  CREATE INDEX ${index('expectation_transaction')} ON ${expectation} (transaction_id, company)
    WHERE transaction_id IS NOT NULL;
  CREATE INDEX ${index('expectation_poll')} ON ${expectation} (next_poll_at) WHERE next_poll_at IS NOT NULL;
  CREATE INDEX ${index('expectation_lower')} ON ${expectation} (lower(reference));
  CREATE INDEX ${index('expectation_created')} ON ${expectation} (created_at${inOrder});
  CREATE INDEX ${index('expectation_state')} ON ${expectation} (state, created_at${inOrder});
  CREATE INDEX ${index('expectation_overdue')} ON ${expectation} (last_result, created_at${inOrder})
    WHERE state = 'overdue';
  CREATE INDEX ${index('expectation_by_poll')} ON ${expectation} (created_at${inOrder}) WHERE fulfilled_by = 'poll';
  CREATE INDEX ${index('expectation_contradiction')} ON ${expectation} (created_at${inOrder})
    WHERE contradiction IS NOT NULL;

  CREATE TABLE ${table('handler')} (
    name ${text} PRIMARY KEY,
    patterns ${text} NOT NULL, -- a JSON array
    first_seen ${integer} NOT NULL,
    last_seen ${integer} NOT NULL -- last heartbeat of removed or retired workers; live workers have a later heartbeat
  ) ${dialect.optionsOfKeyed};

  CREATE TABLE ${table('worker')} (
    id ${dialect.uuid} PRIMARY KEY,
    lease_ms ${integer} NOT NULL, -- for a retired worker: its grace period
    heartbeat_at ${integer} NOT NULL, -- changes with each heartbeat
    retired ${boolean} NOT NULL DEFAULT false,
    handlers ${dialect.json} NOT NULL -- [{"name": …, "patterns": […]}, …]
  ) ${dialect.optionsOfKeyed};

  CREATE TABLE ${table('pause')} (
    handler ${text} PRIMARY KEY, -- a name, or * for all handlers
    facts ${text} NOT NULL, -- a JSON object: handler, who, reason, until
    paused_at ${integer} NOT NULL,
    until_at ${integer} -- when the pause ends by itself
  ) ${dialect.optionsOfKeyed};

  CREATE TABLE ${table('record')} (
    kind ${text} NOT NULL,
    key ${text} NOT NULL,
    version ${integer} NOT NULL, -- increases with each change
    body ${text} NOT NULL,
    changed_at ${integer} NOT NULL, -- store clock
    PRIMARY KEY (kind, key)
  ) ${dialect.options};
  CREATE INDEX ${index('record_changed')} ON ${table('record')} (kind, changed_at, key);
`;
}
