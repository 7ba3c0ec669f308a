import { Pool } from 'pg';

/**
 * Stores events that arrive together by one multi-row insert, over two connections, as the inbox does. This is the
 * lower limit of the costs of storing each event durably and once.
 */
export class GroupedInserts {
  readonly #pool: Pool;
  #waiting: { id: string; body: Buffer; stored: PromiseWithResolvers<void> }[] = [];
  #running = 0;

  private constructor(pool: Pool) {
    this.#pool = pool;
  }

  static async open(connectionString: string): Promise<GroupedInserts> {
    const pool = new Pool({ connectionString, max: 2 });
    await pool.query(
      `CREATE TABLE IF NOT EXISTS bare_events (
         seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE, raw bytea NOT NULL,
         received_at timestamptz NOT NULL DEFAULT now())`,
    );
    return new GroupedInserts(pool);
  }

  insert(id: string, body: Buffer): Promise<void> {
    const stored = Promise.withResolvers<void>();
    this.#waiting.push({ id, body, stored });
    this.#insertNext();
    return stored.promise;
  }

  async close(): Promise<void> {
    await this.#pool.end();
  }

  #insertNext(): void {
    if (this.#running >= 2 || this.#waiting.length === 0) return;
    const group = this.#waiting.splice(0, 500);
    this.#running += 1;
    const ids = group.map(({ id }) => id);
    const bodies = group.map(({ body }) => body);
    this.#pool
      .query({
        name: 'insert',
        text: `INSERT INTO bare_events (id, raw) SELECT * FROM unnest($1::text[], $2::bytea[])
               ON CONFLICT DO NOTHING`,
        values: [ids, bodies],
      })
      .then(
        () => group.forEach(({ stored }) => stored.resolve()),
        (error: unknown) => group.forEach(({ stored }) => stored.reject(error)),
      )
      .finally(() => {
        this.#running -= 1;
        this.#insertNext();
      });
  }
}
