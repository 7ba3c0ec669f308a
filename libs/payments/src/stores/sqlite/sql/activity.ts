import type { ActivityPart, ActivitySlice } from '../../../inbox/store/activity.js';
import type { SqliteConnection } from '../thread/connection.js';

/** How many events one call reads: a millisecond of work, so that a receive between two calls does not wait. */
const SLICE = 500;

export interface ActivityRequest {
  /** The newest events with a lower number are read. */
  readonly before: number;
  readonly fromMinute: number;
}

/** An {@link ActivitySlice} as the thread sends it: the times of a part are JSON. */
export interface ActivitySliceMessage extends Omit<ActivitySlice, 'parts'> {
  readonly parts: readonly (Omit<ActivityPart, 'tookMs'> & { readonly tookMs: string })[];
}

/** The activity of the {@link SLICE} newest events before a number. */
export function activitySlice(
  connection: SqliteConnection,
  { before, fromMinute }: ActivityRequest,
): ActivitySliceMessage {
  const { seq, receivedMs, events } = connection.get<{
    seq: number | null;
    receivedMs: number;
    events: number;
  }>(
    `SELECT min(seq) AS seq, received_at AS receivedMs, count(*) AS events FROM (
       SELECT seq, received_at FROM payments_inbox_event WHERE seq < ? ORDER BY seq DESC LIMIT ${SLICE})`,
    [before],
  )!;
  if (seq === null) return { parts: [], events, oldest: null };
  return {
    parts: connection.all(PARTS, [seq, before, fromMinute]),
    events,
    oldest: { seq, receivedMs },
  };
}

/** Counts failed attempts in the histories, because a delivery may have failed in one minute and again later. */
const PARTS = `
  SELECT minute, handler, sum(received) AS received, sum(failed) AS failed, sum(dead) AS dead,
         json_group_array(took) FILTER (WHERE took IS NOT NULL) AS tookMs
  FROM (
    SELECT received_at / 60000 AS minute, '' AS handler, 1 AS received, 0 AS failed, 0 AS dead, NULL AS took
    FROM payments_inbox_event WHERE seq >= ?1 AND seq < ?2
    UNION ALL
    SELECT received_at / 60000, handler, 1, 0, 0, NULL
    FROM payments_inbox_delivery WHERE event_seq >= ?1 AND event_seq < ?2
    UNION ALL
    SELECT finished_at / 60000, handler, 0, 0, state = 'dead',
           CASE state WHEN 'done' THEN max(0, finished_at - received_at) END
    FROM payments_inbox_delivery WHERE event_seq >= ?1 AND event_seq < ?2 AND state IN ('done', 'dead')
    UNION ALL
    SELECT (json_extract(value, '$[1]') + json_extract(value, '$[2]')) / 60000, handler, 0, 1, 0, NULL
    FROM payments_inbox_delivery, json_each(history)
    WHERE event_seq >= ?1 AND event_seq < ?2 AND failed_at IS NOT NULL AND json_extract(value, '$[3]') IN ('f', 'l')
  ) WHERE minute >= ?3 GROUP BY minute, handler`;

/** Converts a slice that the thread sent. */
export function toActivitySlice({ parts, ...rest }: ActivitySliceMessage): ActivitySlice {
  return {
    ...rest,
    parts: Array.from(parts, (part) => ({
      ...part,
      tookMs: JSON.parse(part.tookMs) as number[],
    })),
  };
}
