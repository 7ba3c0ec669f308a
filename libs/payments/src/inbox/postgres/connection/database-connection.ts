import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { isBroken } from './database-failure.js';

/** A row with every value as the text that PostgreSQL wrote. */
export type Row = Readonly<Record<string, string | null>>;

/** A parameter of a statement. Times and numbers are passed as numbers, and cast in the statement. */
export type Value =
  string | number | boolean | null | Buffer | readonly (string | number | Buffer | null)[];

/**
 * A frequent statement: each connection parses it once and keeps its plan. Its name is a hash of its text, so that a
 * client of a pooler that finds it prepared by another client finds the same statement.
 */
export interface Prepared {
  readonly name: string;
  readonly text: string;
}

export function prepared(text: string): Prepared {
  const hash = createHash('sha256').update(text).digest('hex');
  return { name: `payments_${hash.slice(0, 24)}`, text };
}

/**
 * Every value as text: an application may have replaced the driver's parsers of numbers and times, which all pools
 * share.
 */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value };

/** How much longer than the server the client waits for a statement, so that the server's timeout error comes first. */
const GRACE_MS = 1000;

/** A connection from the pool, to be released. */
export class Connection {
  readonly #ignore = (): void => {};
  #released = false;

  constructor(
    readonly client: PoolClient,
    private readonly timeoutMs: number,
    /** Whether the server keeps prepared statements for this connection. */
    private readonly prepares: boolean,
  ) {
    // The pool listens for errors of idle connections only, and an error event without a listener ends the process. The
    // statement that runs rejects.
    client.on('error', this.#ignore);
  }

  /** Runs one statement, for a bounded time. */
  async run(
    statement: string | Prepared,
    values: readonly Value[] = [],
    timeoutMs = this.timeoutMs,
  ): Promise<{ rows: Row[]; command: string }> {
    const { name, text } =
      typeof statement === 'string' ? { name: undefined, text: statement } : statement;
    const query = {
      name: this.prepares ? name : undefined,
      text,
      values: [...values],
      types: AS_TEXT,
      // Not in the driver's types. It ends the wait for a server that no longer answers.
      query_timeout: timeoutMs + GRACE_MS,
    };
    const { rows, command } = await this.client.query(query);
    return { rows: rows as Row[], command };
  }

  /** Returns it to the pool, or closes it if the failure may have broken it. */
  release(failure?: unknown): void {
    this.#release(failure !== undefined && isBroken(failure));
  }

  /** Closes it, because its state is unknown. */
  discard(): void {
    this.#release(true);
  }

  #release(destroy: boolean): void {
    if (this.#released) return;
    this.#released = true;
    this.client.release(destroy);
    this.client.off('error', this.#ignore);
  }
}
