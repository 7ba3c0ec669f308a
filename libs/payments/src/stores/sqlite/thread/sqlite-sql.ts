import { ParameterList } from '../../sql/sql-connection.js';
import type { CatalogChange, SqlDatabase, SqlDialect, SqlValue } from '../../sql/sql-connection.js';
import { LAYOUT } from '../sql/schema.js';
import type { SqliteConnection, Times } from './connection.js';

/**
 * A connection for one operation, at the time of the process that requested it. It runs the statements of `stores/sql/`; SQLite
 * returns each result at once.
 */
export class SqliteSql implements SqlDatabase {
  /** Whether a delivery or a poll may have become due. The operation sets it. */
  wakes = false;
  #dialect: SqlDialect | undefined;

  constructor(
    readonly connection: SqliteConnection,
    readonly times: Times,
    /** Runs `work` in a transaction. Default: the operation itself runs in a transaction, or needs none. */
    private readonly begin?: <T>(work: (sql: SqliteSql) => T | Promise<T>) => Promise<T>,
  ) {}

  get dialect(): SqlDialect {
    return (this.#dialect ??= dialectAt(this.times));
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

  async transaction<T>(work: (sql: SqliteSql) => T | Promise<T>): Promise<T> {
    if (this.begin === undefined) return work(this);
    return this.begin(async (sql) => {
      const result = await work(sql);
      this.wakes ||= sql.wakes;
      return result;
    });
  }

  async changeCatalog(change: CatalogChange, values: readonly SqlValue[]): Promise<void> {
    const list = new ParameterList(values);
    for (const sql of change.statements(this.dialect, list)) {
      this.connection.run(sql, sql.includes('$') ? list.values.map(toBound) : []);
    }
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
    elements: (array, alias = 'j') => `json_each(${array}) AS ${alias}`,
    jsonArray: (value) => `json_group_array(${value}) FILTER (WHERE ${value} IS NOT NULL)`,
    skipLocked: () => '',
    commits: () => 'true',
    wallOffsetMs: wall - clock,
    layout: LAYOUT,
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
