import type { DeliveryState, InboxStats } from '../inbox-store.js';
import type { ConnectionSource } from './connection.source.js';
import { foldTallies } from './inbox.pruner.js';
import { fromStored } from './stored.text.js';

/** More rows of differences than this are folded, so that the next statistics are quicker. */
const MANY_TALLIES = 5000;

/** Counts: what is unfinished or dead by its index, what is finished by its tallies. */
export class StatsReader {
  readonly #text: string;

  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {
    this.#text = statsText(schema);
  }

  async stats(): Promise<InboxStats> {
    const rows = await this.source.query(this.#text);
    const valuesOf = (kind: string): { name: string; state: string; value: number }[] =>
      rows
        .filter((row) => row['kind'] === kind)
        .map((row) => ({
          name: fromStored(row['name'] ?? ''),
          state: row['state'] ?? '',
          value: Number(row['value']),
        }));
    if (valuesOf('tallies')[0]!.value > MANY_TALLIES) {
      // What was asked for is known already: that this failed is for the next to find out.
      await foldTallies(this.source, this.schema).catch(() => {});
    }
    return {
      deliveries: valuesOf('delivery').map(({ name, state, value }) => ({
        handler: name,
        state: state as DeliveryState,
        count: value,
      })),
      unhandled: valuesOf('unhandled')[0]?.value ?? 0,
      stale: valuesOf('stale')[0]?.value ?? 0,
      oldestPendingMs: valuesOf('oldest')[0]?.value ?? null,
      paused: valuesOf('paused').map(({ name }) => name),
    };
  }
}

const statsText = (schema: string): string => `
WITH live AS (
  SELECT handler, state, count(*) AS count, min(event) AS first
    FROM ${schema}.deliveries WHERE due_at IS NOT NULL GROUP BY handler, state
), counts AS (
  SELECT handler, state, count FROM live
  UNION ALL
  SELECT handler, state, count(*) FROM ${schema}.deliveries WHERE state = 'dead' GROUP BY handler, state
  UNION ALL
  SELECT handler, state, sum(delta) FROM ${schema}.tallies GROUP BY handler, state
)
SELECT 'delivery' AS kind, handler AS name, state, count::float8 AS value FROM counts
 WHERE state NOT IN ('unhandled', 'stale') AND count > 0
UNION ALL
SELECT state, NULL, NULL, count FROM counts WHERE state IN ('unhandled', 'stale')
UNION ALL
SELECT 'oldest', NULL, NULL, extract(epoch FROM clock_timestamp() - e.received_at) * 1000
  FROM ${schema}.events e WHERE e.seq = (SELECT min(first) FROM live)
UNION ALL
SELECT 'paused', handler, NULL, 0 FROM ${schema}.pauses
UNION ALL
SELECT 'tallies', NULL, NULL, count(*) FROM ${schema}.tallies
ORDER BY 1, 2, 3`;
