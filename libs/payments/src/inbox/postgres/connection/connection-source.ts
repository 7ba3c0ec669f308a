import type { Pool } from 'pg';
import { PaymentsError } from '../../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import { Connection } from './database-connection.js';
import type { Prepared, Row, Value } from './database-connection.js';
import { isTransient, PostgresInboxError, unavailable } from './database-failure.js';
import { OutageLog } from './outage-log.js';

/** How often a statement is repeated after a deadlock or a conflict: it had no effect, and the other has ended. */
const MAX_REPEATS = 3;

/** The connections of the inbox. What fails here rejects with `inbox_unavailable`, within a bounded time. */
export class ConnectionSource {
  readonly #outage = new OutageLog("The inbox's PostgreSQL");
  readonly #onPoolError = (error: Error): void => this.#outage.failed(error);
  #strict = false;
  #closed = false;

  constructor(
    private readonly pool: Pool,
    private readonly settings: {
      readonly connectTimeoutMs: number;
      readonly statementTimeoutMs: number;
      readonly preparedStatements: boolean;
    },
    private readonly runtime: PaymentsRuntime,
  ) {
    // A pool emits an error if an idle connection is cut. Without a listener, that would end the process.
    pool.on('error', this.#onPoolError);
  }

  /** Sets READ COMMITTED explicitly, which all statements here need, because it is not the default of the database. */
  isolateExplicitly(): void {
    this.#strict = true;
  }

  /** Runs one statement, in a transaction of its own. */
  async query(statement: string | Prepared, values: readonly Value[] = []): Promise<Row[]> {
    return this.#repeated(async (connection) => {
      const run = (): Promise<{ rows: Row[] }> => connection.run(statement, values);
      const { rows } = this.#strict ? await inTransaction(connection, run) : await run();
      return rows;
    });
  }

  /** Runs statements in one transaction, which may be repeated from the start. */
  async transaction<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    return this.#repeated((connection) => inTransaction(connection, () => work(connection)));
  }

  /** Runs `work` with a connection. What `work` throws is rethrown unchanged. */
  async use<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    const connection = await this.connect();
    try {
      const result = await work(connection);
      connection.release();
      this.#outage.worked();
      return result;
    } catch (error) {
      connection.release(error);
      throw error;
    }
  }

  /** Takes a connection, which the caller releases. */
  async connect(): Promise<Connection> {
    if (this.#closed) throw new PostgresInboxError('The PostgreSQL inbox is closed.', null);
    try {
      return await this.#checkOut();
    } catch (error) {
      this.#outage.failed(error);
      throw unavailable(error);
    }
  }

  /** Rejects later calls. It does not end the pool. */
  close(): void {
    this.#closed = true;
    this.pool.off('error', this.#onPoolError);
  }

  /** For a bounded time: an application's pool may wait forever. */
  #checkOut(): Promise<Connection> {
    const { connectTimeoutMs, statementTimeoutMs, preparedStatements } = this.settings;
    return new Promise((resolve, reject) => {
      let late = false;
      const cancel = this.runtime.schedule(connectTimeoutMs, () => {
        late = true;
        reject(
          new PostgresInboxError(
            `The PostgreSQL inbox had no connection within ${connectTimeoutMs} ms.`,
            null,
          ),
        );
      });
      // With a callback, which is called at once: the pool has just stopped listening to the client, and the packet that
      // ended the handshake may also end the connection. A promise would be too late for that error.
      this.pool.connect((error, client) => {
        cancel();
        if (client === undefined) {
          reject(error ?? new Error('the pool gave neither a connection nor an error'));
          return;
        }
        const connection = new Connection(client, statementTimeoutMs, preparedStatements);
        if (late) connection.release();
        else resolve(connection);
      });
    });
  }

  async #repeated<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await this.use(work);
      } catch (error) {
        if (repeats < MAX_REPEATS && isTransient(error)) continue;
        // A PaymentsError was logged where it came from.
        if (!(error instanceof PaymentsError)) this.#outage.failed(error);
        throw unavailable(error);
      }
    }
  }
}

/** Begins, runs and commits, or rolls back and rethrows. */
async function inTransaction<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  await connection.run('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    const result = await work();
    await connection.run('COMMIT');
    return result;
  } catch (error) {
    await rollBack(connection);
    throw error;
  }
}

/** Rolls back. If that fails too, it closes the connection, which ends the transaction. */
export async function rollBack(connection: Connection): Promise<void> {
  try {
    await connection.run('ROLLBACK');
  } catch {
    connection.discard();
  }
}
