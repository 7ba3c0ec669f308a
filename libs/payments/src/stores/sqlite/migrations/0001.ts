import { tables1 } from '../../sql/migrations/0001.js';

/**
 * The SQL that creates the tables. Bodies are in a table of their own, whose pages become free when bodies are pruned.
 * If bodies were in the rows of events, the pages would stay nearly empty until the tombstones are deleted, and lists
 * would read more pages.
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
  INSERT INTO payments_inbox_meta VALUES (1, 1, 0, 0, 0, 0, 0);
${tables1({
  table: (name) => `payments_inbox_${name}`,
  index: (name) => `payments_inbox_${name}`,
  numbers: 'INTEGER PRIMARY KEY AUTOINCREMENT',
  text: 'TEXT',
  integer: 'INTEGER',
  boolean: 'INTEGER',
  bytes: 'BLOB',
  uuid: 'TEXT',
  hash: 'BLOB',
  json: 'TEXT',
  jsonArray: 'TEXT',
  eventNumber: 'INTEGER NOT NULL REFERENCES payments_inbox_event ON DELETE CASCADE',
  eventColumns: 'pruned INTEGER NOT NULL DEFAULT 0',
  queueColumns: `
    queue TEXT -- for a pending or dead delivery: its queue within the handler
      CHECK (CASE state WHEN 'pending' THEN coalesce(queue, '') IN ('due', 'waiting', 'suspect')
        WHEN 'dead' THEN queue IS 'dead' ELSE queue IS NULL END)
      CHECK (queue IS NOT 'waiting' OR ordering IS NOT NULL),`,
  pruned: 'pruned',
  once: 'ordering_key, event_type, company',
  orderingAndHandler: 'handler, ordering',
  indexed: (text) => text,
  inOrder: '',
  options: 'STRICT',
  optionsOfKeyed: 'STRICT, WITHOUT ROWID',
})}
  CREATE TABLE payments_inbox_body (
    event INTEGER PRIMARY KEY REFERENCES payments_inbox_event ON DELETE CASCADE,
    raw BLOB NOT NULL,
    headers TEXT NOT NULL -- a JSON object
  ) STRICT;
  CREATE INDEX payments_inbox_delivery_queue ON payments_inbox_delivery (handler, queue, due_at, event)
    WHERE queue IS NOT NULL;
  CREATE INDEX payments_inbox_delivery_ordering ON payments_inbox_delivery
    (handler, ordering, queue, due_at, event) WHERE state = 'pending' AND ordering IS NOT NULL;
`;
