import { MAX_FAILED } from '../../store/event-summary.js';
import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import { failuresFunction } from './failures.js';
import { BY_INDEX, HAS_FAILED, indexed } from './schema.js';
import { elementsOf, LAST, toStored } from './stored-rows.js';

/** How many events the function `search` finds at most by the start of one of their texts. */
const MAX_FOUND = 3000;

/** The result of a search. */
export interface Found {
  /** Numbers of the events whose id, transaction id or reference begins with the text; empty if {@link more}. */
  readonly events: readonly string[];
  /** Whether there are more than {@link MAX_FOUND} of them. */
  readonly more: boolean;
  /** Numbers of the events with a failed delivery whose error contains the text. */
  readonly failed: readonly string[];
}

/** Finds the events of a search. */
export async function search(
  source: ConnectionSource,
  schema: string,
  text: string,
): Promise<Found> {
  const statement = prepared(`SELECT * FROM ${schema}.search($1::text)`);
  const [row] = await source.query(statement, [toStored(text)]);
  return {
    events: elementsOf(row!['o_events']),
    more: row!['o_more'] === 't',
    failed: elementsOf(row!['o_failed']),
  };
}

/** SQL: whether a search that finds many events finds an event `e`. `start` and `known` are the placeholders of the text and of {@link Found.failed}. */
export function foundCondition(start: string, known: string): string {
  const ranges = SEARCHED.map((column) => begins(column, start));
  return `(${[`e.seq IN (SELECT unnest(${known}))`, ...ranges].join(' OR ')})`;
}

/** The texts of an event `e` whose start a search compares. Each has an index. */
const SEARCHED = ['e.id', 'e.ordering_key', 'e.reference'] as const;

/** SQL: whether a text begins with another. The range of the index is independent of the collation of the database. */
function begins(column: (typeof SEARCHED)[number], start: string): string {
  const [text, from] = column === 'e.id' ? [column, start] : [indexed(column), indexed(start)];
  return (
    `${column} IS NOT NULL AND ${text} >= ${from} AND ${text} < ${from} || '${LAST}' ` +
    `AND starts_with(${column}, ${start})`
  );
}

/**
 * The function `search` reads a range of an index for each searched text, and the failed deliveries of the newest events. It
 * may find an event twice.
 */
const searchFunction = (schema: string): string => {
  const found = (condition: string): string =>
    `(SELECT e.seq FROM ${schema}.event e WHERE ${condition} LIMIT ${MAX_FOUND + 1})`;
  return `
CREATE FUNCTION ${schema}.search(p_text text, OUT o_events bigint[], OUT o_more boolean, OUT o_failed bigint[])
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $search$
BEGIN
  SELECT array_agg(f.seq) INTO o_events FROM (
    ${SEARCHED.map((column) => found(begins(column, 'p_text'))).join(' UNION ALL ')}
  ) f;
  o_more := COALESCE(cardinality(o_events), 0) > ${MAX_FOUND};
  IF o_more THEN o_events := NULL; END IF;
  SELECT array_agg(f.event) INTO o_failed FROM (
    SELECT d.event, d.last_error FROM ${schema}.delivery d WHERE ${HAS_FAILED}
     ORDER BY d.event DESC LIMIT ${MAX_FAILED}
  ) f WHERE strpos(lower(f.last_error COLLATE "C"), lower(p_text COLLATE "C")) > 0;
END $search$;
`;
};

/** The functions `search` and `failures`. */
export const searchFunctions = (schema: string): string =>
  searchFunction(schema) + failuresFunction(schema);
