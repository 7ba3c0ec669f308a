/**
 * A condition that the planner is not to choose an index by.
 *
 * The statistics of a queue lie: taken in a quiet moment, they say that the index of unfinished deliveries is
 * all but empty, and a statement that knows its row by its key is given that index all the same, to read the
 * whole backlog through it. Hidden like this, the condition no longer tells that the row is in that index.
 */
export function hidden(condition: string): string {
  return `COALESCE(${condition}, false)`;
}
