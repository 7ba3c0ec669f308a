import { hash } from 'node:crypto';
import { countsOnce } from '../../sql/sql-connection.js';
import type {
  CatalogChange,
  SqlConnection,
  SqlDatabase,
  SqlDialect,
  SqlValue,
  StoreLayout,
} from '../../sql/sql-connection.js';
import { STRICT_ISOLATION } from '../connection/connection-source.js';
import type {
  Connection,
  ConnectionSource,
  Parameter,
  StatementResult,
} from '../connection/connection-source.js';

/** Returns the number of an advisory lock of this schema. */
export function lockNumber(schema: string, purpose: string): string {
  return hash('sha256', `nestjs-payments inbox ${schema} ${purpose}`, 'buffer')
    .readBigInt64BE()
    .toString();
}

/**
 * Returns the name of a schema in quotes. `resolvePostgresOptions` has checked the name, so no character has to be
 * escaped.
 */
export function quoted(schema: string): string {
  return `"${schema}"`;
}

/** The settings of the planner that are turned off so that every plan uses indexes. */
export const TURNED_OFF = [
  'enable_seqscan',
  'enable_bitmapscan',
  'enable_hashjoin',
  'enable_mergejoin',
  'jit',
];

/**
 * The settings of frequently called functions. PostgreSQL may collect its statistics when the indexes of unfinished
 * deliveries are empty. If a backlog
 * arrives later, a plan that is based on these statistics reads the whole backlog. With these settings, every plan uses
 * the indexes, for any statistics. `test/e2e/postgres/plans.spec.ts` fails without the settings. A function that only
 * these functions call inherits the settings and does not set them again, because this takes time.
 */
export const BY_INDEX = `
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  ${TURNED_OFF.map((name) => `SET ${name} = off`).join('\n  ')}`;

/**
 * SQL: whether one snapshot is used for the whole transaction. This snapshot may be older than the locks that the
 * transaction takes.
 */
export const IS_STRICT = `current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted')`;

/** A statement for functions that read after they have taken a lock. The inbox then repeats the call in READ COMMITTED. */
export const NEEDS_READ_COMMITTED = `IF ${IS_STRICT} THEN
    RAISE EXCEPTION USING ERRCODE = '${STRICT_ISOLATION}', MESSAGE = 'the inbox needs the isolation level READ COMMITTED';
  END IF;`;

/**
 * Returns a condition that the planner cannot match with a partial index. Otherwise, PostgreSQL may read a partial
 * index of unfinished deliveries instead of the primary key: if this index was empty when the statistics were
 * collected, reading it looks cheap.
 */
export function withoutPartialIndex(condition: string): string {
  return `COALESCE(${condition}, false)`;
}

/**
 * SQL at the end of an EXISTS that makes the planner look up each key in the index. Without this SQL, the planner
 * expects an empty index and may hash the whole index, which reads the entry of each delivery that ran since the last
 * vacuum.
 */
export const LOOKED_UP = 'OFFSET 0';

/**
 * SQL: whether a delivery `d` is pending and becomes claimable when it is due. With `suspect` 1, only suspects match;
 * with 0, only other deliveries. The index `delivery_due` finds these deliveries by handler and `suspect`.
 */
export const isClaimable = (suspect: 0 | 1 | 'v_suspect'): string =>
  `d.state = 'pending' AND NOT d.waiting AND least(d.crashes, 1) = ${suspect}`;

/** SQL for the current time in milliseconds since the epoch, which is not the start time of the transaction. */
export const NOW_MS = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/**
 * SQL: whether `event` has the same transaction and type as `other`, and is the one event that counts for them. The SQL
 * reads the index `event_once`.
 */
export const isOnceOf = (event: string, other: string): string =>
  `${indexed(`${event}.ordering_key`)} = ${indexed(`${other}.ordering_key`)} AND ${event}.ordering = ${other}.ordering
     AND ${event}.event_type = ${other}.event_type AND ${countsOnce(`${event}.`)}`;

/** The indexes of searches contain only the start of a text, because an index entry has a limited size. */
export const indexed = (text: string): string => `left(${text}, 200)`;

/** Runs the statements of `stores/sql/` on PostgreSQL. */
export class PostgresSql implements SqlDatabase {
  readonly dialect: SqlDialect;

  /** Without a connection, each statement has its own transaction. */
  constructor(
    private readonly source: Pick<ConnectionSource, 'run' | 'transaction'>,
    private readonly schema: string,
    private readonly connection: Connection | null = null,
  ) {
    this.dialect = dialectOf(schema);
  }

  async all<Row>(sql: string, parameters: readonly SqlValue[] = []): Promise<Row[]> {
    const { rows, columns } = await this.#run(sql, parameters);
    for (const { name, dataTypeID } of columns) {
      const reader = READERS[dataTypeID];
      if (reader === undefined) continue;
      for (const row of rows as Record<string, unknown>[]) {
        const text = row[name] as string | null;
        if (text !== null) row[name] = reader(text);
      }
    }
    return rows as Row[];
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
  layout: layoutOf(schema),
});

/** SQL conditions that are always true. As a side effect, they change a setting until the end of the transaction. */
const COMMITS = {
  durably: `(current_setting('synchronous_commit') <> 'off' OR set_config('synchronous_commit', 'on', true) <> '')`,
  lazily: `set_config('synchronous_commit', 'off', true) <> ''`,
};

/** Makes plans use indexes until the end of the transaction. */
const PLANNED_BY_INDEX = `SELECT set_config(name, 'off', true) FROM unnest(
  '{${TURNED_OFF.join()}}'::text[]) AS name`;

/** Parsers of column values, by the OID of the PostgreSQL type. Values of other types remain strings. */
const READERS: Readonly<Record<number, (text: string) => number | boolean>> = {
  16: (text) => text === 't', // boolean
  20: Number, // bigint
  21: Number, // smallint
  23: Number, // integer
  701: Number, // double precision
  1700: Number, // numeric
};

const layoutOf = (schema: string): StoreLayout => ({
  bodies: `${schema}.event`,
  pruned: 'e.raw IS NULL',
  tombstone: 'raw = NULL, headers = NULL',
  bodyTables: [],
  queues: [
    { state: 'pending', index: 'waiting', condition: 'd.waiting' },
    { state: 'pending', index: 'due', condition: isClaimable(0) },
    { state: 'pending', index: 'due', condition: isClaimable(1) },
    { state: 'dead', index: 'dead', condition: "d.state = 'dead'" },
  ],
});
