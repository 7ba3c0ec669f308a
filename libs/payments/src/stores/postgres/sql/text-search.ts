import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import { failuresFunction } from './failures.js';
import { BY_INDEX, countsOnce, indexed, notOnce } from './schema.js';
import { elementsOf, LAST, toStored } from './stored-rows.js';

/** How many events the function `search` finds at most. */
const MAX_FOUND = 3000;

/** The result of a search. */
export interface Found {
  /** Numbers of the found events; empty if {@link more}. */
  readonly events: readonly string[];
  /** Whether there are more than {@link MAX_FOUND} of them. */
  readonly more: boolean;
}

/** Finds the events whose id or reference begins with a text, or whose transaction it is. */
export async function search(
  source: ConnectionSource,
  schema: string,
  text: string,
): Promise<Found> {
  const statement = prepared(`SELECT * FROM ${schema}.search($1::text)`);
  const [row] = await source.query(statement, [toStored(text)]);
  return { events: elementsOf(row!['o_events']), more: row!['o_more'] === 't' };
}

/** SQL: the conditions of which an event `e` must meet one to be found. Each has an index. */
export const foundConditions = (text: string): string[] => [
  begins('e.id', 'e.id', text, text),
  begins('e.reference', indexed('e.reference'), text, indexed(text)),
  ...[countsOnce('e'), notOnce('e')].map(
    (condition) =>
      `${condition} AND ${indexed('e.ordering_key')} = ${indexed(text)} AND e.ordering_key = ${text}`,
  ),
];

/** SQL: whether a column begins with a text. The range of the index is independent of the collation of the database. */
const begins = (column: string, key: string, text: string, from: string): string =>
  `${column} IS NOT NULL AND ${key} >= ${from} AND ${key} < ${from} || '${LAST}' AND starts_with(${column}, ${text})`;

/** The function `search` reads a range of each index. It may find an event twice. */
const searchFunction = (schema: string): string => {
  const found = (condition: string): string =>
    `(SELECT e.seq FROM ${schema}.event e WHERE ${condition} LIMIT ${MAX_FOUND + 1})`;
  return `
CREATE FUNCTION ${schema}.search(p_text text, OUT o_events bigint[], OUT o_more boolean)
LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $search$
BEGIN
  SELECT array_agg(f.seq) INTO o_events FROM (${foundConditions('p_text').map(found).join(' UNION ALL ')}) f;
  o_more := COALESCE(cardinality(o_events), 0) > ${MAX_FOUND};
  IF o_more THEN o_events := NULL; END IF;
END $search$;
`;
};

/** The functions `search` and `failures`. */
export const searchFunctions = (schema: string): string =>
  searchFunction(schema) + failuresFunction(schema);
