/**
 * Settings of the functions that run all day. The statistics of a queue are misleading: taken in a quiet moment, they
 * say that the tables of the backlog are empty, and a plan made from them reads all of it later. With these settings
 * every plan uses the indexes, whatever the statistics say. `postgres-plans.spec.ts` fails without them.
 */
export const BY_INDEX = `
  SET search_path = pg_catalog, pg_temp
  SET enable_seqscan = off
  SET enable_bitmapscan = off
  SET plan_cache_mode = force_generic_plan
  SET jit = off
  SET enable_hashjoin = off
  SET enable_mergejoin = off`;

/**
 * A condition that the planner cannot choose a partial index by. A statement that knows its row by its key would
 * otherwise be planned with the index of unfinished deliveries if that was empty when the statistics were taken.
 */
export function hidden(condition: string): string {
  return `COALESCE(${condition}, false)`;
}

/** The current time in whole milliseconds, as the application's dates are. Not the start of the transaction. */
export const NOW = `date_trunc('milliseconds', clock_timestamp())`;

/** Milliseconds as an interval. */
export const asInterval = (ms: string): string => `${ms} * interval '1 millisecond'`;

/** Milliseconds since the epoch, independent of the session's time zone and date style. */
export const epochMs = (column: string): string => `extract(epoch FROM ${column}) * 1000`;
