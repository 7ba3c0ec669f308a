import type {
  CatalogChange,
  SqlConnection,
  SqlDatabase,
  SqlDialect,
  SqlValue,
} from '../../sql/sql-connection.js';
import { indexed, NOW_MS, TURNED_OFF } from '../sql/schema.js';
import type { ConnectionSource } from './connection-source.js';
import type { Connection, Parameter, StatementResult } from './database-connection.js';

/** Runs the statements of `stores/sql/` on PostgreSQL. */
export class PostgresSql implements SqlDatabase {
  readonly dialect: SqlDialect;

  /** @param connection runs the statements in its transaction; without it, each statement has one of its own. */
  constructor(
    private readonly source: Pick<ConnectionSource, 'run' | 'transaction'>,
    private readonly schema: string,
    private readonly connection: Connection | null = null,
  ) {
    this.dialect = dialectOf(schema);
  }

  async all<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row[]> {
    const { rows, columns } = await this.#run(sql, parameters);
    const read = columns.map(({ name, dataTypeID }) => [name, READERS[dataTypeID]] as const);
    return rows.map(
      (row) =>
        Object.fromEntries(
          read.map(([name, reader]) => {
            const text = row[name] ?? null;
            return [name, text !== null && reader !== undefined ? reader(text) : text];
          }),
        ) as Row,
    );
  }

  async get<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row | undefined> {
    return (await this.all<Row>(sql, parameters))[0];
  }

  async run(sql: string, parameters: readonly SqlValue[] = []): Promise<number> {
    return (await this.#run(sql, parameters)).count;
  }

  transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    return this.source.transaction(async (connection) => {
      await connection.run(PLANNED_BY_INDEX);
      return work(new PostgresSql(this.source, this.schema, connection));
    });
  }

  async changeCatalog(change: CatalogChange, values: readonly SqlValue[]): Promise<void> {
    const parameters = change.types.map((type, index) => `$${index + 1}::${type}`).join(', ');
    await this.run(`SELECT ${this.schema}.${change.name}(${parameters})`, values);
  }

  #run(sql: string, parameters: readonly SqlValue[]): Promise<StatementResult> {
    return (this.connection ?? this.source).run(sql, parameters as readonly Parameter[]);
  }
}

/** The dialect of PostgreSQL for the tables of a schema. */
export const dialectOf = (schema: string): SqlDialect => ({
  table: (name) => `${schema}.${name}`,
  now: () => NOW_MS,
  isOneOf: (column, parameter) => `${column} = ANY (${parameter})`,
  hex: (column) => `encode(${column}, 'hex')`,
  index: () => '',
  indexed,
  elements: (array, alias = 'j') => `json_array_elements(${array}) AS ${alias} (value)`,
  jsonArray: (value) => `json_agg(${value}) FILTER (WHERE ${value} IS NOT NULL)`,
  skipLocked: (alias) => `FOR UPDATE OF ${alias} SKIP LOCKED`,
  commits: (how) => COMMITS[how],
  wallOffsetMs: 0,
});

/** Conditions that change a setting until the end of the transaction. */
const COMMITS = {
  durably: `(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'on', true) <> '')`,
  lazily: `set_config('synchronous_commit', 'off', true) <> ''`,
};

/** Makes plans use indexes until the end of the transaction. */
const PLANNED_BY_INDEX = `SELECT set_config(name, 'off', true) FROM unnest(
  '{${TURNED_OFF.join()}}'::text[]) AS name`;

/** By the number of a type: reads the text that PostgreSQL writes for a value. Other values remain texts. */
const READERS: Readonly<Record<number, (text: string) => number | boolean>> = {
  16: (text) => text === 't', // boolean
  20: Number, // bigint
  21: Number, // smallint
  23: Number, // integer
  701: Number, // double precision
  1700: Number, // numeric
};
