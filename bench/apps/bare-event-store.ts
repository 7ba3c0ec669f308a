import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';

/** The database of a {@link LimitStore}. */
export type LimitDatabase =
  | { readonly kind: 'postgres'; readonly url: string }
  | { readonly kind: 'sqlite'; readonly file: string };

interface NewEvent {
  readonly id: string;
  /** The payment transaction, which has one event of the type. */
  readonly transaction: string;
  readonly body: Buffer;
}

/**
 * Stores new events with a delivery each, and sets earlier deliveries to done, in one transaction. Returns the numbers of
 * the new deliveries.
 */
type Write = (events: readonly NewEvent[], done: readonly unknown[]) => Promise<unknown[]>;

/**
 * What every inbox has to write for an event that is handled: the event, its delivery, and that it is done, with unique
 * keys on the event's id, its transaction and its delivery. Events that arrive together share a transaction, over two
 * connections on PostgreSQL, as in the inbox. There are no leases, retries, searches or lists.
 */
export class LimitStore {
  #events: { event: NewEvent; stored: PromiseWithResolvers<void> }[] = [];
  #done: unknown[] = [];
  #running = 0;
  readonly #write: Write;
  readonly #width: number;
  readonly #groupMs: number;
  readonly close: () => Promise<void> | void;

  /** `width`: how many transactions run at a time. `groupMs`: how long the first event of a group waits for others. */
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

  /** Resolves when the event is on the disk. Its delivery becomes done soon after. */
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
  // A commit blocks the event loop, so it has to be worth it.
  return new LimitStore(write, { width: 1, groupMs: 3 }, () => db.close());
}

function hashOf(transaction: string): Buffer {
  return createHash('sha256').update(transaction).digest();
}
