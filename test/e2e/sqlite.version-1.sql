-- The tables of version 1, as the release before made them: what an upgrade begins with. Never changed.
CREATE TABLE payments_inbox_schema (version INTEGER NOT NULL, barrier INTEGER NOT NULL) STRICT;
INSERT INTO payments_inbox_schema VALUES (1, 0);
CREATE TABLE payments_inbox_event (
  seq INTEGER PRIMARY KEY,
  company TEXT NOT NULL,
  id TEXT NOT NULL,
  dedupe_key TEXT, -- NULL where it is the id
  event_type TEXT NOT NULL,
  occurred_at INTEGER NOT NULL,
  ordering_key TEXT,
  received_at INTEGER NOT NULL,
  digest BLOB NOT NULL, -- SHA-256 of the body
  deliveries INTEGER NOT NULL, -- how many there are
  open INTEGER NOT NULL, -- how many of them are neither done nor skipped
  pruned INTEGER NOT NULL DEFAULT 0 -- 1: a tombstone, without body and deliveries
) STRICT;
CREATE UNIQUE INDEX payments_inbox_event_id ON payments_inbox_event (id, company);
CREATE UNIQUE INDEX payments_inbox_event_dedupe ON payments_inbox_event (dedupe_key, company)
  WHERE dedupe_key IS NOT NULL;
CREATE INDEX payments_inbox_event_received ON payments_inbox_event (received_at);
CREATE INDEX payments_inbox_event_finished ON payments_inbox_event (received_at)
  WHERE pruned = 0 AND open = 0;
CREATE INDEX payments_inbox_event_unhandled ON payments_inbox_event (received_at)
  WHERE pruned = 0 AND deliveries = 0;
CREATE INDEX payments_inbox_event_tombstone ON payments_inbox_event (received_at) WHERE pruned = 1;

CREATE TABLE payments_inbox_body (
  event_seq INTEGER PRIMARY KEY REFERENCES payments_inbox_event ON DELETE CASCADE,
  raw BLOB NOT NULL
) STRICT;

CREATE TABLE payments_inbox_delivery (
  event_seq INTEGER NOT NULL REFERENCES payments_inbox_event ON DELETE CASCADE,
  handler TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'running', 'done', 'dead', 'skipped')),
  attempts INTEGER NOT NULL DEFAULT 0,
  token INTEGER NOT NULL DEFAULT 0,
  due_at INTEGER CHECK ((due_at IS NULL) = (state IN ('done', 'dead', 'skipped'))),
  finished_at INTEGER,
  last_error TEXT,
  lane TEXT, -- company and ordering key
  occurred_at INTEGER NOT NULL,
  received_at INTEGER NOT NULL,
  PRIMARY KEY (event_seq, handler)
) STRICT, WITHOUT ROWID;
CREATE INDEX payments_inbox_delivery_due ON payments_inbox_delivery (handler, due_at, event_seq, lane)
  WHERE due_at IS NOT NULL;
CREATE INDEX payments_inbox_delivery_leased ON payments_inbox_delivery (handler, lane, due_at)
  WHERE state = 'running';
CREATE INDEX payments_inbox_delivery_unfinished ON payments_inbox_delivery (received_at, event_seq)
  WHERE due_at IS NOT NULL;
CREATE INDEX payments_inbox_delivery_parked ON payments_inbox_delivery (received_at, event_seq)
  WHERE state IN ('dead', 'skipped');
CREATE INDEX payments_inbox_delivery_done ON payments_inbox_delivery (handler, lane, occurred_at)
  WHERE state = 'done' AND lane IS NOT NULL;

CREATE TABLE payments_inbox_handler (
  handler TEXT PRIMARY KEY, -- a name, or * for all
  paused_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE payments_inbox_count (
  handler TEXT NOT NULL, -- '' for events without a delivery
  state TEXT NOT NULL,
  count INTEGER NOT NULL,
  PRIMARY KEY (handler, state)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER payments_inbox_delivery_added AFTER INSERT ON payments_inbox_delivery BEGIN
  INSERT INTO payments_inbox_count VALUES (NEW.handler, NEW.state, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER payments_inbox_delivery_moved AFTER UPDATE OF state ON payments_inbox_delivery
WHEN OLD.state <> NEW.state BEGIN
  UPDATE payments_inbox_count SET count = count - 1 WHERE handler = OLD.handler AND state = OLD.state;
  INSERT INTO payments_inbox_count VALUES (NEW.handler, NEW.state, 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER payments_inbox_delivery_settled AFTER UPDATE OF state ON payments_inbox_delivery
WHEN (OLD.state IN ('done', 'skipped')) <> (NEW.state IN ('done', 'skipped')) BEGIN
  UPDATE payments_inbox_event SET open = open + iif(NEW.state IN ('done', 'skipped'), -1, 1)
    WHERE seq = NEW.event_seq;
END;
CREATE TRIGGER payments_inbox_delivery_removed AFTER DELETE ON payments_inbox_delivery BEGIN
  UPDATE payments_inbox_count SET count = count - 1 WHERE handler = OLD.handler AND state = OLD.state;
END;
CREATE TRIGGER payments_inbox_event_added AFTER INSERT ON payments_inbox_event
WHEN NEW.deliveries = 0 BEGIN
  INSERT INTO payments_inbox_count VALUES ('', 'unhandled', 1)
    ON CONFLICT DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER payments_inbox_event_moved AFTER UPDATE OF deliveries, pruned ON payments_inbox_event
WHEN (OLD.deliveries = 0 AND OLD.pruned = 0) AND NOT (NEW.deliveries = 0 AND NEW.pruned = 0) BEGIN
  UPDATE payments_inbox_count SET count = count - 1 WHERE handler = '' AND state = 'unhandled';
END;
CREATE TRIGGER payments_inbox_event_removed AFTER DELETE ON payments_inbox_event
WHEN OLD.deliveries = 0 AND OLD.pruned = 0 BEGIN
  UPDATE payments_inbox_count SET count = count - 1 WHERE handler = '' AND state = 'unhandled';
END;
