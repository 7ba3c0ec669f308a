import { KEPT_MINUTES, toActivity } from '../activity.minutes.js';
import type { ActivityCounts, ActivityMinute, RecordedMinute } from '../activity.minutes.js';
import type { ConnectionSource } from './connection.source.js';
import { epochMs } from './stored.rows.js';

/** What all instances did, minute by minute, by the database's clock: one row each. */
export class ActivityMinutes {
  constructor(
    private readonly source: ConnectionSource,
    private readonly schema: string,
  ) {}

  async record({ received, handled, failed, dead, handledWithin }: ActivityCounts): Promise<void> {
    await this.source.query(recordText(this.schema), [
      received,
      handled,
      failed,
      dead,
      handledWithin,
    ]);
  }

  async activity(minutes: number): Promise<ActivityMinute[]> {
    const rows = await this.source.query(activityText(this.schema), [minutes]);
    const now = Number(rows[0]!['now_ms']);
    const recorded = rows
      .filter((row) => row['minute_ms'] !== null)
      .map((row): RecordedMinute => ({
        at: Math.round(Number(row['minute_ms'])),
        received: Number(row['received']),
        handled: Number(row['handled']),
        failed: Number(row['failed']),
        dead: Number(row['dead']),
        handledWithin: JSON.parse(row['handled_within']!) as number[],
      }));
    return toActivity(recorded, now, minutes);
  }

  /** Forgets what nobody can ask for any more. */
  async prune(): Promise<void> {
    await this.source.query(
      `DELETE FROM ${this.schema}.activity
        WHERE minute <= ${MINUTE} - ${KEPT_MINUTES} * interval '1 minute'`,
    );
  }
}

/** The current one. UTC: there are time zones whose minutes once began at a second of their own. */
const MINUTE = `date_trunc('minute', clock_timestamp(), 'UTC')`;

const recordText = (schema: string): string => `
INSERT INTO ${schema}.activity AS known (minute, received, handled, failed, dead, handled_within)
VALUES (${MINUTE}, $1, $2, $3, $4, $5::bigint[])
ON CONFLICT (minute) DO UPDATE SET
  received = known.received + excluded.received,
  handled = known.handled + excluded.handled,
  failed = known.failed + excluded.failed,
  dead = known.dead + excluded.dead,
  handled_within = (
    SELECT array_agg(COALESCE(both_of.a, 0) + COALESCE(both_of.b, 0) ORDER BY both_of.place)
      FROM unnest(known.handled_within, excluded.handled_within)
        WITH ORDINALITY AS both_of (a, b, place))`;

/** One row at least, for the time. */
const activityText = (schema: string): string => `
SELECT ${epochMs('n.now')} AS now_ms, ${epochMs('a.minute')} AS minute_ms,
       a.received, a.handled, a.failed, a.dead, to_json(a.handled_within) AS handled_within
  FROM (SELECT clock_timestamp() AS now) n
  LEFT JOIN ${schema}.activity a
    ON a.minute > date_trunc('minute', n.now, 'UTC') - $1::integer * interval '1 minute'`;
