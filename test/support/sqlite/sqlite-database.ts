import { randomUUID } from 'node:crypto';
import type { ClaimedMessage } from '../../../libs/payments/src/stores/sqlite/sql/claim.js';
import type { EventMessage } from '../../../libs/payments/src/stores/sqlite/sql/receive.js';
import { createTables } from '../../../libs/payments/src/stores/sqlite/sql/schema.js';
import {
  loadDriver,
  machineMs,
  SqliteConnection,
} from '../../../libs/payments/src/stores/sqlite/thread/connection.js';
import type {
  DriverDatabase,
  Times,
} from '../../../libs/payments/src/stores/sqlite/thread/connection.js';
import { OPERATIONS } from '../../../libs/payments/src/stores/sqlite/thread/operations.js';

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
    createTables(connection, 100);
    return new SqliteDatabase(database, connection);
  }

  get times(): Times {
    return { wall: this.now, clock: this.now, processOffset: this.now - machineMs() };
  }

  /** Registers a worker without handlers, so that the version of the catalog stays 0. */
  worker(leaseMs = 60_000): string {
    const id = randomUUID();
    OPERATIONS.register(this.connection, { id, leaseMs, handlers: [] }, this.times);
    return id;
  }

  /** Receives an event with the given fields for one handler, `book`. Returns its id. */
  receive(event: Partial<EventMessage> = {}): string {
    const message = this.event(event);
    OPERATIONS.receive(this.connection, { events: [message] }, this.times);
    return message.id;
  }

  event(event: Partial<EventMessage> = {}): EventMessage {
    this.#received += 1;
    const id = event.id ?? `event-${this.#received}`;
    return {
      company: 'acme',
      id,
      eventType: 't',
      occurredAt: 1,
      orderingKey: null,
      raw: Buffer.from(id),
      headers: '{}',
      oncePerTransaction: false,
      handlers: ['book'],
      catalogVersion: 0,
      assign: null,
      stale: false,
      source: 'webhook',
      reference: null,
      summary: null,
      fulfils: false,
      ...event,
    };
  }

  claim(worker: string, limit = 10, handler = 'book'): ClaimedMessage[] {
    const wanted = [{ handler, limit }];
    return OPERATIONS.claim(this.connection, { worker, wanted }, this.times);
  }

  /** Rows of a query, as plain objects. */
  all<Row>(sql: string): Row[] {
    return this.connection.all<Row & object>(sql).map((row) => ({ ...row }));
  }

  close(): void {
    this.connection.close();
  }
}
