import { randomUUID } from 'node:crypto';
import type {
  ClaimedDelivery,
  IncomingEvent,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { migrate } from '../../../libs/payments/src/stores/sqlite/migrate.js';
import {
  loadDriver,
  machineMs,
  SqliteConnection,
  SqliteSql,
} from '../../../libs/payments/src/stores/sqlite/thread/connection.js';
import type {
  DriverDatabase,
  Times,
} from '../../../libs/payments/src/stores/sqlite/thread/connection.js';
import { OPERATIONS } from '../../../libs/payments/src/stores/sqlite/sqlite-operations.js';
import type { Operation } from '../../../libs/payments/src/stores/sqlite/sqlite-operations.js';
import { SqliteExpectationOperations } from '../../../libs/payments/src/stores/sqlite/sql/expectations.js';
import { incoming } from '../../store-contract/contract-fixtures.ts';

/** The methods of the store, without waiting for a thread. */
type Methods = {
  readonly [Name in keyof typeof OPERATIONS]: (typeof OPERATIONS)[Name] extends readonly [
    unknown,
    (sql: SqliteSql, ...args: infer Arguments) => infer Result,
  ]
    ? (...args: Arguments) => Result
    : never;
};

/** The operations of the SQLite inbox on a database in memory, with a clock that the test sets. */
export class SqliteDatabase {
  /** The time of all clocks. */
  now = 1_000_000;
  #received = 0;

  private constructor(
    readonly database: DriverDatabase,
    readonly connection: SqliteConnection,
  ) {}

  static async open(): Promise<SqliteDatabase> {
    const database = new (await loadDriver())(':memory:');
    const connection = new SqliteConnection(database);
    migrate(connection, 100);
    return new SqliteDatabase(database, connection);
  }

  get times(): Times {
    return { wall: this.now, clock: this.now, processOffset: this.now - machineMs() };
  }

  /** Runs statements of `stores/sql/`. */
  sql(times = this.times): SqliteSql {
    return new SqliteSql(this.connection, times);
  }

  /** The operations of the store, now or at other times. */
  store(times = this.times): Methods & { readonly expectations: SqliteExpectationOperations } {
    const sql = this.sql(times);
    const methods = Object.entries<Operation>(OPERATIONS).map(([name, [, run]]) => [
      name,
      (...args: never[]) => run(sql, ...args),
    ]);
    const expectations = new SqliteExpectationOperations(sql);
    return { ...(Object.fromEntries(methods) as Methods), expectations };
  }

  /** Registers a worker without handlers, so that the version of the catalog stays 0. */
  worker(leaseMs = 60_000): string {
    const id = randomUUID();
    // The operation runs its statements at once, and only its result is a promise.
    void this.store().register({ id, leaseMs, handlers: [] });
    return id;
  }

  /** Receives an event with the given fields for one handler, `book`. Returns its id. */
  receive(fields: Partial<IncomingEvent> = {}): string {
    const event = this.event(fields);
    this.store().receive([event]);
    return event.id;
  }

  event(fields: Partial<IncomingEvent> = {}): IncomingEvent {
    this.#received += 1;
    const id = fields.id ?? `event-${this.#received}`;
    const occurredAt = new Date(1);
    return incoming({ id, eventType: 't', occurredAt, raw: Buffer.from(id), ...fields });
  }

  claim(worker: string, limit = 10, handler = 'book'): ClaimedDelivery[] {
    return this.store().claim({ workerId: worker, wanted: [{ handler, limit }] });
  }

  /** Rows of a query, as plain objects. */
  all<Row>(sql: string): Row[] {
    return this.connection.all<Row & object>(sql).map((row) => ({ ...row }));
  }

  close(): void {
    this.connection.close();
  }
}
