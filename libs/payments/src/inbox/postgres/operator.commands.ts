import type { DeliverySelection } from '../inbox-store.js';
import type { ConnectionSource } from './connection.source.js';
import type { Value } from './database.connection.js';
import { toStored } from './stored.text.js';

/** What an operator does to deliveries: run again, leave out, hold back. */
export class OperatorCommands {
  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  async redrive(
    selections: readonly DeliverySelection[],
    options: { readonly force: boolean; readonly dueInMs: readonly number[] },
  ): Promise<number> {
    const dueInMs = selections.flatMap(({ handlers }, index) =>
      handlers.map(() => options.dueInMs[index] ?? 0),
    );
    return this.#count(redriveText(this.schema), [
      ...columnsOf(selections),
      dueInMs,
      options.force,
    ]);
  }

  async skip(selections: readonly DeliverySelection[]): Promise<number> {
    return this.#count(skipText(this.schema), columnsOf(selections));
  }

  async pause(handler: string, paused: boolean): Promise<void> {
    const { schema } = this;
    await this.source.query(
      paused
        ? `INSERT INTO ${schema}.pauses (handler) VALUES ($1) ON CONFLICT DO NOTHING`
        : `DELETE FROM ${schema}.pauses WHERE handler = $1`,
      [toStored(handler)],
    );
  }

  async #count(text: string, values: readonly Value[]): Promise<number> {
    if ((values[0] as readonly string[]).length === 0) return 0;
    const [row] = await this.source.query(text, values);
    return Number(row!['changed']);
  }
}

/**
 * Locks the events first, against pruning: an event that is pruned at this moment is waited for, and left
 * alone once it is. Rows are taken in order, so that two operators cannot wait for each other.
 */
const redriveText = (schema: string): string => `
WITH wanted AS (
  SELECT company, id, handler, min(due_ms) AS due_ms
    FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[]) AS w (company, id, handler, due_ms)
   GROUP BY company, id, handler
), kept AS MATERIALIZED (
  SELECT e.seq, e.company, e.id, e.ordering FROM ${schema}.events e
   WHERE (e.company, e.id) IN (SELECT company, id FROM wanted) AND e.raw IS NOT NULL
   ORDER BY e.seq FOR SHARE
), targets AS MATERIALIZED (
  SELECT k.seq, k.ordering, w.handler,
         clock_timestamp() + w.due_ms * interval '1 millisecond' AS due_at
    FROM kept k JOIN wanted w ON w.company = k.company AND w.id = k.id
), again AS (
  UPDATE ${schema}.deliveries d
     SET state = 'pending', finished_at = NULL,
         attempts = CASE WHEN d.state = 'pending' THEN d.attempts ELSE 0 END,
         abandoned = d.abandoned AND d.state = 'pending',
         -- It may fall due sooner for it, never later.
         due_at = LEAST(d.due_at, t.due_at)
    FROM targets t
   WHERE d.event = t.seq AND d.handler = t.handler
     AND (d.state IN ('pending', 'dead', 'skipped') OR ($5::boolean AND d.state = 'done'))
  RETURNING 1
), added AS (
  INSERT INTO ${schema}.deliveries (event, handler, state, due_at, ordering)
  SELECT t.seq, t.handler, 'pending', t.due_at, t.ordering FROM targets t
   WHERE NOT EXISTS (SELECT FROM ${schema}.deliveries d WHERE d.event = t.seq AND d.handler = t.handler)
   ORDER BY t.seq, t.handler
  ON CONFLICT DO NOTHING
  RETURNING event
), handled AS (
  UPDATE ${schema}.events e SET unhandled = false
   WHERE e.unhandled AND e.seq IN (SELECT event FROM added)
)
SELECT (SELECT count(*) FROM again) + (SELECT count(*) FROM added) AS changed`;

const skipText = (schema: string): string => `
WITH skipped AS (
  UPDATE ${schema}.deliveries d
     SET state = 'skipped', finished_at = clock_timestamp(), due_at = NULL
    FROM unnest($1::text[], $2::text[], $3::text[]) AS w (company, id, handler)
    JOIN ${schema}.events e ON e.company = w.company AND e.id = w.id
   WHERE d.event = e.seq AND d.handler = w.handler AND d.state IN ('pending', 'dead')
  RETURNING 1
) SELECT count(*) AS changed FROM skipped`;

function columnsOf(selections: readonly DeliverySelection[]): [string[], string[], string[]] {
  const rows = selections.flatMap(({ company, id, handlers }) =>
    handlers.map((handler) => [company, id, handler].map(toStored)),
  );
  return [rows.map((row) => row[0]!), rows.map((row) => row[1]!), rows.map((row) => row[2]!)];
}
