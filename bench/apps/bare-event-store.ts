import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';

/** The database of a {@link LimitStore}. */
export type LimitDatabase =
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'sqlite'; readonly file: string };

interface NewEvent {
  readonly id: string;
  /** The id of the payment transaction. The store accepts one event per transaction. */
  readonly transaction: string;
  readonly body: Buffer;
}

/**
 * Stores new events, each with a delivery, and marks earlier deliveries as done, in one database transaction. Returns
 * the numbers of the new deliveries.
 */
type Write = (events: readonly NewEvent[], done: readonly unknown[]) => Promise<unknown[]>;

/**
 * A store that writes only what every inbox must write for a handled event: the event, its delivery, and the state
 * `done`. Unique keys cover the event id, the payment transaction and the delivery. Events that arrive together share
 * a database transaction, as in the inbox. On PostgreSQL, the store uses two connections, as the inbox does. The store
 * has no leases, retries, searches or lists.
 */
export class LimitStore {
  #events: { event: NewEvent; stored: PromiseWithResolvers<void> }[] = [];
  #done: unknown[] = [];
  #running = 0;
  readonly #write: Write;
  readonly #width: number;
  readonly #groupMs: number;
  readonly close: () => Promise<void> | void;

  /**
   * `width` is the number of transactions that run at the same time. `groupMs` is the number of milliseconds for
   * which the first event of a group waits for more events.
   */
  constructor(
    write: Write,
    { width, groupMs }: { width: number; groupMs: number },
    close: () => Promise<void> | void,
  ) {
    this.#write = write;
    this.#width = width;
    this.#groupMs = groupMs;
    this.close = close;
  }

  /** Stores an event, and resolves when it is on the disk. A later write marks its delivery as done. */
  store(event: NewEvent): Promise<void> {
    const stored = Promise.withResolvers<void>();
    this.#events.push({ event, stored });
    if (this.#events.length === 1) this.#writeSoon();
    return stored.promise;
  }

  #writeSoon(): void {
    setTimeout(() => this.#writeNext(), this.#groupMs);
  }

  #writeNext(): void {
    if (this.#running >= this.#width || this.#events.length + this.#done.length === 0) return;
    const group = this.#events.splice(0, 500);
    const done = this.#done.splice(0);
    this.#running += 1;
    const events = group.map(({ event }) => event);
    this.#write(events, done)
      .then(
        (numbers) => {
          this.#done.push(...numbers);
          for (const { stored } of group) stored.resolve();
        },
        (error: unknown) => {
          for (const { stored } of group) stored.reject(error);
        },
      )
      .finally(() => {
        this.#running -= 1;
        this.#writeSoon();
      });
  }
}

export async function openLimitStore(database: LimitDatabase): Promise<LimitStore> {
  return database.kind === 'postgres' ? openPostgres(database.url) : openSqlite(database.file);
}

async function openPostgres(connectionString: string): Promise<LimitStore> {
  const pool = new Pool({ connectionString, max: 2 });
  await pool.query(
    `CREATE TABLE event (
       seq bigint GENERATED ALWAYS AS IDENTITY, id text NOT NULL UNIQUE, once bytea NOT NULL UNIQUE, raw bytea NOT NULL,
       received_at timestamptz NOT NULL DEFAULT now());
     CREATE TABLE delivery (event bigint PRIMARY KEY, state text NOT NULL, finished_at timestamptz)`,
  );
  const write: Write = async (events, done) => {
    const { rows } = await pool.query<{ event: string }>({
      name: 'write',
      text: `WITH done AS (UPDATE delivery SET state = 'done', finished_at = now() WHERE event = ANY ($1::bigint[])),
               stored AS (INSERT INTO event (id, once, raw) SELECT * FROM unnest($2::text[], $3::bytea[], $4::bytea[])
                 ON CONFLICT DO NOTHING RETURNING seq)
             INSERT INTO delivery (event, state) SELECT seq, 'running' FROM stored RETURNING event`,
      values: [
        done,
        events.map(({ id }) => id),
        events.map(({ transaction }) => hashOf(transaction)),
        events.map(({ body }) => body),
      ],
    });
    return rows.map(({ event }) => event);
  };
  return new LimitStore(write, { width: 2, groupMs: 0 }, () => pool.end());
}

function openSqlite(file: string): LimitStore {
  const db = new DatabaseSync(file);
  db.exec(
    `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
     CREATE TABLE event (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, once BLOB NOT NULL UNIQUE, raw BLOB NOT NULL,
       received_at INTEGER NOT NULL) STRICT;
     CREATE TABLE delivery (event INTEGER PRIMARY KEY, state TEXT NOT NULL, finished_at INTEGER) STRICT`,
  );
  const insertEvent = db.prepare(
    'INSERT INTO event (id, once, raw, received_at) VALUES (?, ?, ?, ?)',
  );
  const insertDelivery = db.prepare("INSERT INTO delivery (event, state) VALUES (?, 'running')");
  const setDone = db.prepare("UPDATE delivery SET state = 'done', finished_at = ? WHERE event = ?");
  const write: Write = async (events, done) => {
    const now = Date.now();
    db.exec('BEGIN IMMEDIATE');
    for (const number of done) setDone.run(now, number as number);
    const numbers = events.map(({ id, transaction, body }) => {
      const { lastInsertRowid } = insertEvent.run(id, hashOf(transaction), body, now);
      insertDelivery.run(lastInsertRowid);
      return lastInsertRowid;
    });
    db.exec('COMMIT');
    return numbers;
  };
  // A commit blocks the event loop, so each commit waits 3 ms for more events.
  return new LimitStore(write, { width: 1, groupMs: 3 }, () => db.close());
}

function hashOf(transaction: string): Buffer {
  return createHash('sha256').update(transaction).digest();
}
