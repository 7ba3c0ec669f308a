import type { SqlConnection, SqlDatabase, SqlDialect, SqlValue } from '../../sql/sql-connection.js';
import type { SqliteConnection, Times } from './connection.js';

/** Runs the statements of `stores/sql/` on SQLite, at the time of one operation. SQLite returns each result at once. */
export class SqliteSql implements SqlDatabase {
  readonly dialect: SqlDialect;

  constructor(
    private readonly connection: SqliteConnection,
    times: Times,
  ) {
    this.dialect = dialectAt(times);
  }

  async all<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row[]> {
    return this.connection.all<Row>(sql, parameters.map(toBound));
  }

  async get<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row | undefined> {
    return this.connection.get<Row>(sql, parameters.map(toBound));
  }

  async run(sql: string, parameters: readonly SqlValue[] = []): Promise<number> {
    return this.connection.run(sql, parameters.map(toBound));
  }

  /** The thread has begun a transaction for an operation that writes. */
  transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    return work(this);
  }
}

/** The dialect of SQLite at a time. */
export function dialectAt({ wall, clock }: Times): SqlDialect {
  return {
    table: (name) => `payments_inbox_${name}`,
    now: (which, parameters) => parameters.add(which === 'wall' ? wall : clock, 'bigint'),
    isOneOf: (column, parameter) => `${column} IN (SELECT value FROM json_each(${parameter}))`,
    hex: (column) => `lower(hex(${column}))`,
    index: (name) => `INDEXED BY payments_inbox_${name}`,
    indexed: (text) => text,
    elements: (array) => `json_each(${array}) AS j`,
    jsonArray: (value) => `json_group_array(${value}) FILTER (WHERE ${value} IS NOT NULL)`,
    skipLocked: () => '',
    commits: () => 'true',
    wallOffsetMs: wall - clock,
  };
}

/** Lets the thread run what has arrived meanwhile. */
export function pause(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A value as SQLite binds it. */
export function toBound(value: SqlValue): string | number | null | Uint8Array {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return value;
  return JSON.stringify(value);
}
