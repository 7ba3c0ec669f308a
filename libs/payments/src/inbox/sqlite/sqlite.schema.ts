import { PaymentsError } from '../../payments.errors.js';
import { retryWhileBusy } from './sqlite.connection.js';
import type { SqliteConnection } from './sqlite.connection.js';

/**
 * The migrations, in order; the schema's version is how many have run. One that was released is never
 * changed: what comes after it is added below.
 *
 * Beyond the two tables of the inbox: bodies lie apart, or every change of an event's row would write its
 * body again; `payments_inbox_count` is kept by triggers, so that a dashboard never counts a million rows.
 */
const MIGRATIONS: readonly string[] = [
  `
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
    WHERE pruned = 0 AND deliveries = 0 AND event_type <> 'webhook.test'; -- a test needs no handler
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
  WHEN NEW.deliveries = 0 AND NEW.event_type <> 'webhook.test' BEGIN
    INSERT INTO payments_inbox_count VALUES ('', 'unhandled', 1)
      ON CONFLICT DO UPDATE SET count = count + 1;
  END;
  CREATE TRIGGER payments_inbox_event_moved AFTER UPDATE OF deliveries, pruned ON payments_inbox_event
  WHEN (OLD.deliveries = 0 AND OLD.pruned = 0 AND OLD.event_type <> 'webhook.test')
    AND NOT (NEW.deliveries = 0 AND NEW.pruned = 0) BEGIN
    UPDATE payments_inbox_count SET count = count - 1 WHERE handler = '' AND state = 'unhandled';
  END;
  CREATE TRIGGER payments_inbox_event_removed AFTER DELETE ON payments_inbox_event
  WHEN OLD.deliveries = 0 AND OLD.pruned = 0 AND OLD.event_type <> 'webhook.test' BEGIN
    UPDATE payments_inbox_count SET count = count - 1 WHERE handler = '' AND state = 'unhandled';
  END;
  `,
  // Headers lie with the body, which goes when they are to go: in the event's row, each change of it would write
  // them again. What is new has a default or may be NULL, for a process of the version before that runs on.
  `
  ALTER TABLE payments_inbox_body ADD COLUMN headers TEXT; -- a JSON object
  ALTER TABLE payments_inbox_delivery ADD COLUMN started_at INTEGER; -- when it was last claimed
  ALTER TABLE payments_inbox_delivery ADD COLUMN history TEXT NOT NULL DEFAULT '[]'; -- a JSON array of arrays

  CREATE TABLE payments_inbox_activity (
    minute INTEGER PRIMARY KEY, -- its start
    received INTEGER NOT NULL,
    handled INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    dead INTEGER NOT NULL,
    handled_within TEXT NOT NULL -- a JSON array: how many in each bucket of the histogram
  ) STRICT;
  `,
  // Events without a delivery are counted by the reason that they have none.
  `
  ALTER TABLE payments_inbox_event ADD COLUMN stale INTEGER NOT NULL DEFAULT 0; -- 1: too old when it was received

  DROP TRIGGER payments_inbox_event_added;
  CREATE TRIGGER payments_inbox_event_added AFTER INSERT ON payments_inbox_event
  WHEN NEW.deliveries = 0 AND NEW.event_type <> 'webhook.test' BEGIN
    INSERT INTO payments_inbox_count VALUES ('', iif(NEW.stale, 'stale', 'unhandled'), 1)
      ON CONFLICT DO UPDATE SET count = count + 1;
  END;
  DROP TRIGGER payments_inbox_event_moved;
  CREATE TRIGGER payments_inbox_event_moved AFTER UPDATE OF deliveries, pruned ON payments_inbox_event
  WHEN (OLD.deliveries = 0 AND OLD.pruned = 0 AND OLD.event_type <> 'webhook.test')
    AND NOT (NEW.deliveries = 0 AND NEW.pruned = 0) BEGIN
    UPDATE payments_inbox_count SET count = count - 1
      WHERE handler = '' AND state = iif(OLD.stale, 'stale', 'unhandled');
  END;
  DROP TRIGGER payments_inbox_event_removed;
  CREATE TRIGGER payments_inbox_event_removed AFTER DELETE ON payments_inbox_event
  WHEN OLD.deliveries = 0 AND OLD.pruned = 0 AND OLD.event_type <> 'webhook.test' BEGIN
    UPDATE payments_inbox_count SET count = count - 1
      WHERE handler = '' AND state = iif(OLD.stale, 'stale', 'unhandled');
  END;
  `,
];

/**
 * Brings the tables to the version this code knows. Several processes may do so at once: the first does, the
 * others find it done.
 *
 * @throws PaymentsError `inbox_unavailable` where the file was written by a newer version of the package.
 */
export function migrate(
  connection: SqliteConnection,
  busyTimeoutMs: number,
  migrations: readonly string[] = MIGRATIONS,
): void {
  retryWhileBusy(busyTimeoutMs, () => connection.run('BEGIN IMMEDIATE'));
  try {
    connection.exec(
      'CREATE TABLE IF NOT EXISTS payments_inbox_schema (version INTEGER NOT NULL, barrier INTEGER NOT NULL) STRICT;' +
        'INSERT INTO payments_inbox_schema SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM payments_inbox_schema)',
    );
    const row = connection.get<{ version: number }>('SELECT version FROM payments_inbox_schema');
    const version = row?.version ?? 0;
    if (version > migrations.length) throw newerSchema(version, migrations.length);
    for (const migration of migrations.slice(version)) connection.exec(migration);
    if (version < migrations.length) {
      connection.run('UPDATE payments_inbox_schema SET version = ?', migrations.length);
    }
    connection.run('COMMIT');
  } catch (error) {
    connection.rollback();
    throw error;
  }
}

function newerSchema(found: number, known: number): PaymentsError {
  return new PaymentsError(
    'inbox_unavailable',
    `The SQLite inbox has tables of version ${found}, and this nestjs-payments knows up to ${known}: a newer ` +
      'one has opened the file. Run that version here too; tables are never taken back.',
  );
}
