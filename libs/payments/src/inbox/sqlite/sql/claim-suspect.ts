import type { SuspectRequest } from '../../inbox-store.js';
import type { Times } from '../store-clock.js';
import type { SqliteConnection } from '../thread/connection.js';
import { lease } from './claim.js';
import type { ClaimedMessage } from './claim.js';
import { unpaused } from './pause.js';
import { isLive } from './workers.js';

/** Leases the longest due suspect whose ordering key is free; without `alone`, one of a single crash. */
export function claimSuspect(
  connection: SqliteConnection,
  { worker, handlers, alone }: SuspectRequest,
  times: Times,
): ClaimedMessage | null {
  if (!isLive(connection, worker)) return null;
  const due = unpaused(connection, handlers).flatMap((handler) => {
    const row = connection.get<{ event_seq: number; due_at: number }>(
      `SELECT event_seq, due_at FROM payments_inbox_delivery d INDEXED BY payments_inbox_delivery_queue
       WHERE handler = ? AND queue = 'suspect' AND due_at <= ? AND crashes <= ?
         AND NOT EXISTS (
           SELECT 1 FROM payments_inbox_delivery INDEXED BY payments_inbox_delivery_running
           WHERE state = 'running' AND handler = d.handler AND ordering = d.ordering)
       ORDER BY due_at, event_seq LIMIT 1`,
      [handler, times.clock, alone ? Number.MAX_SAFE_INTEGER : 1],
    );
    return row === undefined ? [] : [{ ...row, handler }];
  });
  const [first] = due.toSorted((a, b) => a.due_at - b.due_at || a.event_seq - b.event_seq);
  return first ? lease(connection, first.event_seq, first.handler, worker, alone, times) : null;
}
