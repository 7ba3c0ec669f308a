import { createHash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { isBroken } from './database-failure.js';

/** A row as it came: every value the text that PostgreSQL wrote. */
export type Row = Readonly<Record<string, string | null>>;

/** What a statement may be given. Times and numbers are passed as numbers, and cast where they arrive. */
export type Value =
  string | number | boolean | null | Buffer | readonly (string | number | Buffer | null)[];

/**
 * A statement that is run all day: each connection parses it once and keeps its plan. Its name says what its
 * text is, so that whoever finds it prepared already, by another client of a pooler, finds the same.
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
 * Every value as its text: an application may have set the driver's parsers, which all its pools share, to
 * make of a number or a time what it likes.
 */
const AS_TEXT = { getTypeParser: () => (value: unknown) => value };

/** How much longer than the server we wait for a statement, so that its own word of a timeout comes first. */
const GRACE_MS = 1000;

/** A connection that was taken from the pool, to be given back. */
export class Connection {
  readonly #ignore = (): void => {};
  #released = false;

  constructor(
    readonly client: PoolClient,
    private readonly timeoutMs: number,
    /** Whether the server keeps prepared statements for this connection. */
    private readonly prepares: boolean,
  ) {
    // The pool listens to those that lie idle only; the death of this one, with nobody listening, would be
    // the process's too. What was running on it rejects, and that is where it is dealt with.
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
      // Not in the driver's types. It is what ends the wait for a server that has fallen silent.
      query_timeout: timeoutMs + GRACE_MS,
    };
    const { rows, command } = await this.client.query(query);
    return { rows: rows as Row[], command };
  }

  /** Gives it back or, after a failure that says nothing good of it, throws it away. */
  release(failure?: unknown): void {
    this.#release(failure !== undefined && isBroken(failure));
  }

  /** Throws it away: its state is unknown. */
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
