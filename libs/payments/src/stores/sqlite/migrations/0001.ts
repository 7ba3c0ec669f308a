/**
 * The SQL that creates the tables. Bodies are in a table of their own, whose pages become free when bodies are pruned.
 * If bodies were in the rows of events, the pages would stay nearly empty until the tombstones are deleted, and lists
 * would read more pages. Most indexes of deliveries are partial, because an index without done deliveries stays small,
 * for any number of done deliveries in the table.
 */
export const version1 = `
  CREATE TABLE payments_inbox_meta (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    version INTEGER NOT NULL, -- version of these tables
    catalog_version INTEGER NOT NULL, -- increases with each change of names or patterns of handlers
    clock INTEGER NOT NULL, -- the store clock, when it was stored last
    wall INTEGER NOT NULL, -- the wall clock at that time
    syncs INTEGER NOT NULL, -- increased to make a commit that writes nothing else sync the log
    pruned_to INTEGER NOT NULL -- the last event that pruning has passed
  ) STRICT;

  CREATE TABLE payments_inbox_event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- AUTOINCREMENT: no number is used twice, because leases contain it
    company TEXT NOT NULL,
    id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    received_at INTEGER NOT NULL, -- wall clock
    ordering_key TEXT,
    reference TEXT, -- this column, amount and currency are the summary; NULL in a tombstone
    amount TEXT,
    currency TEXT,
    once INTEGER NOT NULL DEFAULT 0, -- 1: the type is handled once per transaction, and the event has a transaction
    digest BLOB NOT NULL, -- SHA-256 of the body
    stale INTEGER NOT NULL, -- 1: the event was too old when it was received, and was not redriven
    unhandled INTEGER NOT NULL, -- 1: the event has no delivery although its type needs one
    pruned INTEGER NOT NULL DEFAULT 0, -- 1: a tombstone, without body and deliveries
    source TEXT NOT NULL DEFAULT 'webhook', -- webhook, poll or overdue
    repeats TEXT -- other events of its transaction: a JSON array of arrays of id and time, the oldest first
  ) STRICT;
  CREATE UNIQUE INDEX payments_inbox_event_id ON payments_inbox_event (id, company);
  -- Each event with a transaction is in one of the next two indexes, so a look-up of a transaction reads both.
  CREATE UNIQUE INDEX payments_inbox_event_once ON payments_inbox_event (ordering_key, event_type, company)
    WHERE once AND NOT stale;
  CREATE INDEX payments_inbox_event_transaction ON payments_inbox_event (ordering_key)
    WHERE ordering_key IS NOT NULL AND (NOT once OR stale);
  CREATE INDEX payments_inbox_event_reference ON payments_inbox_event (lower(reference)) WHERE reference IS NOT NULL;
  CREATE INDEX payments_inbox_event_tombstone ON payments_inbox_event (received_at) WHERE pruned;
  CREATE INDEX payments_inbox_event_unhandled ON payments_inbox_event (stale) WHERE unhandled;

  -- The events up to pruned_to that could not be pruned.
  CREATE TABLE payments_inbox_kept (event INTEGER PRIMARY KEY) STRICT;

  CREATE TABLE payments_inbox_body (
    event INTEGER PRIMARY KEY REFERENCES payments_inbox_event ON DELETE CASCADE,
    raw BLOB NOT NULL,
    headers TEXT NOT NULL -- a JSON object
  ) STRICT;

  CREATE TABLE payments_inbox_delivery (
    event INTEGER NOT NULL REFERENCES payments_inbox_event ON DELETE CASCADE,
    handler TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'dead', 'skipped')),
    queue TEXT -- for a pending or dead delivery: its queue within the handler
      CHECK (CASE state WHEN 'pending' THEN coalesce(queue, '') IN ('due', 'waiting', 'suspect')
        WHEN 'dead' THEN queue IS 'dead' ELSE queue IS NULL END)
      CHECK (queue IS NOT 'waiting' OR ordering IS NOT NULL),
    crashes INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0,
    worker TEXT CHECK ((worker IS NULL) = (state <> 'running')),
    due_at INTEGER CHECK ((due_at IS NULL) = (state <> 'pending')), -- by the store clock
    started_at INTEGER, -- start of the last attempt, wall clock
    failed_at INTEGER, -- end of the last attempt that failed or was lost
    finished_at INTEGER,
    last_error TEXT,
    frames TEXT, -- the application's own stack frames of last_error
    ordering BLOB, -- hash of company and ordering key
    history TEXT NOT NULL DEFAULT '[]', -- a JSON array of arrays, without the attempt that made the delivery done
    PRIMARY KEY (event, handler)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX payments_inbox_delivery_queue ON payments_inbox_delivery (handler, queue, due_at, event)
    WHERE queue IS NOT NULL;
  CREATE INDEX payments_inbox_delivery_ordering ON payments_inbox_delivery
    (handler, ordering, queue, due_at, event) WHERE state = 'pending' AND ordering IS NOT NULL;
  CREATE UNIQUE INDEX payments_inbox_delivery_running ON payments_inbox_delivery (handler, ordering)
    WHERE state = 'running';
  CREATE INDEX payments_inbox_delivery_undone ON payments_inbox_delivery (worker, state, event)
    WHERE state NOT IN ('done', 'running');
  CREATE INDEX payments_inbox_delivery_failed ON payments_inbox_delivery (event) WHERE last_error IS NOT NULL AND state IN ('pending', 'running', 'dead');

  CREATE TABLE payments_inbox_expectation (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, -- AUTOINCREMENT: no number is used twice, because leases contain it
    company TEXT NOT NULL,
    reference TEXT NOT NULL,
    transaction_id TEXT,
    state TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'fulfilled', 'overdue', 'cancelled')),
    created_at INTEGER NOT NULL, -- wall clock
    created_clock INTEGER NOT NULL, -- the same time by the store clock
    due_in_ms INTEGER, -- after the creation
    schedule TEXT NOT NULL, -- a JSON array of milliseconds
    next_poll_at INTEGER, -- store clock; while a poll is leased: the end of the lease
    leased INTEGER NOT NULL DEFAULT 0,
    token INTEGER NOT NULL DEFAULT 0, -- increases with each lease
    lost_polls INTEGER NOT NULL DEFAULT 0, -- the number of consecutive leases that were not settled
    polls INTEGER NOT NULL DEFAULT 0,
    last_poll_at INTEGER,
    last_result TEXT CHECK ((last_result IS NULL) = (last_poll_at IS NULL)),
    last_detail TEXT,
    fulfilled_at INTEGER CHECK ((fulfilled_at IS NOT NULL) = (state = 'fulfilled')),
    fulfilled_by TEXT, -- source of the event
    fulfilled_id TEXT, -- id of the event
    fulfilled_type TEXT,
    fulfilled_transaction TEXT, -- ordering key of the event
    cancelled_at INTEGER CHECK ((cancelled_at IS NOT NULL) = (state = 'cancelled')),
    cancelled_by TEXT, -- name of the operator
    cancel_note TEXT,
    contradiction TEXT,
    other_event_id TEXT, -- id of an event of another transaction with this reference
    request TEXT CHECK (request IN ('running', 'answered', 'unknown', 'accepted')), -- NULL if there was no request
    request_token INTEGER NOT NULL DEFAULT 0, -- increases with each request
    request_until INTEGER -- store clock: the end of the lease of the last request
  ) STRICT;
  CREATE UNIQUE INDEX payments_inbox_expectation_reference ON payments_inbox_expectation (reference, company);
  CREATE INDEX payments_inbox_expectation_transaction ON payments_inbox_expectation (transaction_id, company)
    WHERE transaction_id IS NOT NULL;
  CREATE INDEX payments_inbox_expectation_poll ON payments_inbox_expectation (next_poll_at)
    WHERE next_poll_at IS NOT NULL;
  CREATE INDEX payments_inbox_expectation_lower ON payments_inbox_expectation (lower(reference));
  CREATE INDEX payments_inbox_expectation_created ON payments_inbox_expectation (created_at);
  CREATE INDEX payments_inbox_expectation_state ON payments_inbox_expectation (state, created_at);
  CREATE INDEX payments_inbox_expectation_overdue ON payments_inbox_expectation (last_result, created_at)
    WHERE state = 'overdue';
  CREATE INDEX payments_inbox_expectation_by_poll ON payments_inbox_expectation (created_at)
    WHERE fulfilled_by = 'poll';
  CREATE INDEX payments_inbox_expectation_contradiction ON payments_inbox_expectation (created_at)
    WHERE contradiction IS NOT NULL;

  CREATE TABLE payments_inbox_handler (
    name TEXT PRIMARY KEY,
    patterns TEXT NOT NULL, -- a JSON array
    first_seen INTEGER NOT NULL,
    last_seen INTEGER NOT NULL -- last heartbeat of removed or retired workers; live workers have a later heartbeat
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE payments_inbox_worker (
    id TEXT PRIMARY KEY,
    lease_ms INTEGER NOT NULL, -- for a retired worker: its grace period
    heartbeat_at INTEGER NOT NULL, -- changes with each heartbeat
    retired INTEGER NOT NULL DEFAULT 0,
    handlers TEXT NOT NULL -- a JSON array of objects
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE payments_inbox_pause (
    handler TEXT PRIMARY KEY, -- a name, or * for all handlers
    facts TEXT NOT NULL, -- a JSON object: handler, who, reason, until
    paused_at INTEGER NOT NULL,
    until_at INTEGER -- when the pause ends by itself
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE payments_inbox_record (
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    version INTEGER NOT NULL, -- increases with each change
    body TEXT NOT NULL,
    changed_at INTEGER NOT NULL, -- store clock
    PRIMARY KEY (kind, key)
  ) STRICT;
  CREATE INDEX payments_inbox_record_changed ON payments_inbox_record (kind, changed_at, key);

  INSERT INTO payments_inbox_meta VALUES (1, 1, 0, 0, 0, 0, 0);
`;
