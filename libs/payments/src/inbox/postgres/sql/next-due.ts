import type { ConnectionSource } from '../connection/connection-source.js';
import { prepared } from '../connection/database-connection.js';
import type { Prepared } from '../connection/database-connection.js';
import type { ClaimCursors } from './claim-cursors.js';
import { BY_INDEX, epochMs } from './planner-settings.js';
import { toStored } from './stored-text.js';

/** Returns when the next delivery becomes claimable. */
export class NextDueStatement {
  readonly #statement: Prepared;

  constructor(
    private readonly source: ConnectionSource,
    schema: string,
    private readonly cursors: ClaimCursors,
  ) {
    this.#statement = prepared(
      `SELECT min(${schema}.first_due_ms(n.handler, n.since, NULL)) - ${epochMs('clock_timestamp()')} AS ms
         FROM unnest($1::text[], $2::float8[]) AS n (handler, since)`,
    );
  }

  async nextDueInMs(handlers: readonly string[]): Promise<number | null> {
    const values = [handlers.map(toStored), this.cursors.startsOf(handlers)];
    const [row] = await this.source.query(this.#statement, values);
    const ms = row!['ms'];
    return ms == null ? null : Number(ms);
  }
}

/** The first due time of a handler from one time on (or from the first) to another (or to the last), if it is not paused. */
export const nextDueFunction = (schema: string): string => `
CREATE FUNCTION ${schema}.first_due_ms(p_handler text, p_since_ms float8, p_until_ms float8)
RETURNS double precision LANGUAGE plpgsql STABLE ${BY_INDEX}
AS $due$
BEGIN
  IF EXISTS (SELECT FROM ${schema}.pause p WHERE p.handler IN (p_handler, '*')) THEN RETURN NULL; END IF;
  RETURN (
    SELECT ${epochMs('d.due_at')} FROM ${schema}.delivery d
     WHERE d.handler = p_handler AND d.state = 'pending' AND NOT d.held AND d.crashes = 0
       AND d.due_at >= COALESCE(to_timestamp(p_since_ms / 1000), '-infinity')
       AND d.due_at < COALESCE(to_timestamp(p_until_ms / 1000), 'infinity')
     ORDER BY d.due_at LIMIT 1);
END $due$;
`;
