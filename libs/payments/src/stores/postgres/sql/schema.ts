import { hash } from 'node:crypto';
import { countsOnce } from '../../sql/conditions.js';
import type { StoreLayout } from '../../sql/layout.js';

/** A number for an advisory lock of this schema. */
export function lockNumber(schema: string, purpose: string): string {
  return hash('sha256', `nestjs-payments inbox ${schema} ${purpose}`, 'buffer')
    .readBigInt64BE()
    .toString();
}

/** The name of a schema in a statement. `resolvePostgresOptions` checked it, so nothing in it has to be escaped. */
export function quoted(schema: string): string {
  return `"${schema}"`;
}

/** With these settings off, every plan uses indexes. */
export const TURNED_OFF = [
  'enable_seqscan',
  'enable_bitmapscan',
  'enable_hashjoin',
  'enable_mergejoin',
  'jit',
];

/**
 * Settings of the functions that run all day. The statistics of a queue are misleading: PostgreSQL takes them in a quiet
 * moment, when the indexes of unfinished deliveries are empty, and a plan made from them later reads a whole backlog. With
 * these settings every plan uses the indexes, for any statistics. `postgres-plans.spec.ts` fails without them. A function
 * that only such functions call inherits the settings: to set and to reset them takes time.
 */
export const BY_INDEX = `
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  ${TURNED_OFF.map((name) => `SET ${name} = off`).join('\n  ')}`;

/**
 * A condition that the planner cannot match with a partial index. A statement that finds its row by the primary key could
 * otherwise be planned with an index of unfinished deliveries, if that was empty when the statistics were taken.
 */
export function withoutPartialIndex(condition: string): string {
  return `COALESCE(${condition}, false)`;
}

/**
 * SQL at the end of an EXISTS, with which the planner looks each key up in the index. Without it, the planner expects an
 * empty index, may hash all of it, and so read the entry of each delivery that ran since the last vacuum.
 */
export const LOOKED_UP = 'OFFSET 0';

/** SQL for the current time in milliseconds since the epoch. It is not the start of the transaction. */
export const NOW_MS = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

/** SQL: whether an event counts as the only one of the transaction and type of another event. Reads `event_once`. */
export const isOnceOf = (event: string, other: string): string =>
  `${indexed(`${event}.ordering_key`)} = ${indexed(`${other}.ordering_key`)} AND ${event}.ordering = ${other}.ordering
     AND ${event}.event_type = ${other}.event_type AND ${countsOnce(event)}`;

/** SQL for the start of a text, which the indexes of searches contain: an index entry has a limited size. */
export const indexed = (text: string): string => `left(${text}, 200)`;

/** Each state of a delivery has an index. */
export const layoutOf = (schema: string): StoreLayout => ({
  bodies: `${schema}.event`,
  pruned: 'e.raw IS NULL',
  tombstone: 'raw = NULL, headers = NULL',
  bodyTables: [],
  queues: [
    { state: 'pending', index: 'waiting', condition: 'd.waiting' },
    { state: 'pending', index: 'due', condition: IS_DUE },
    { state: 'pending', index: 'suspect', condition: IS_SUSPECT },
    { state: 'dead', index: 'dead', condition: "d.state = 'dead'" },
  ],
  unqueued: 'waiting = false',
});

const IS_DUE = "d.state = 'pending' AND NOT d.waiting AND d.crashes = 0";
const IS_SUSPECT = "d.state = 'pending' AND NOT d.waiting AND d.crashes > 0";
