import { toHistory } from '../store/stored-event.js';
import type { HistoryEntry } from '../store/stored-event.js';
import type {
  ActivityCounts,
  ActivityMinute,
  ClaimedDelivery,
  HandlerCatalog,
  IncomingEvent,
  InboxStats,
  StoredDelivery,
  StoredEvent,
  StoreReceipt,
} from '../store/inbox-store.js';
import type { ActivityRow } from './sql/activity.js';
import type { CatalogMessage } from './sql/catalog.js';
import type { ClaimedMessage } from './sql/claim.js';
import type { ReceiptMessage } from './sql/receive.js';
import type { StoredDeliveryMessage, StoredEventMessage } from './sql/stored-rows.js';

// Answers of the thread, as the contract describes them. Every object and array is a new one: those of a message are
// plain data of Node's own realm, and under a test runner with realms of its own, `instanceof Date` and strict
// comparisons would fail.

/** What the thread leaves out of a receipt is in the event: a new delivery is at its first attempt. */
export function toReceipts(
  receipts: readonly ReceiptMessage[],
  events: readonly IncomingEvent[],
): StoreReceipt[] {
  return Array.from(receipts, ({ outcome, id, pending, seq, receivedAt, claimed }, index) => {
    const { company, raw } = events[index]!;
    const first = { company, id, seq, token: 1, attempt: 1, crashes: 0, ageMs: 0, raw };
    return {
      outcome,
      id,
      pending,
      claimed: Array.from(claimed, ({ handler, newerHandled }) => ({
        ...first,
        handler,
        newerHandled,
        receivedAt: new Date(receivedAt),
      })),
    };
  });
}

export function toClaimed(delivery: ClaimedMessage): ClaimedDelivery {
  return {
    ...delivery,
    receivedAt: new Date(delivery.receivedAt),
    raw: toBuffer(delivery.raw),
  };
}

export function toEvent(event: StoredEventMessage): StoredEvent {
  return {
    ...event,
    occurredAt: new Date(event.occurredAt),
    receivedAt: new Date(event.receivedAt),
    raw: event.raw && toBuffer(event.raw),
    headers: JSON.parse(event.headers ?? '{}') as Record<string, string>,
    repeats: Array.from(event.repeats, ({ id, receivedAt }) => ({
      id,
      receivedAt: new Date(receivedAt),
    })),
    deliveries: Array.from(event.deliveries, toDelivery),
  };
}

export function toStats({
  deliveries,
  unhandled,
  stale,
  oldestPendingMs,
  paused,
}: InboxStats): InboxStats {
  return {
    deliveries: Array.from(deliveries, (counted) => ({ ...counted })),
    unhandled: { ...unhandled },
    stale: { ...stale },
    oldestPendingMs,
    paused: Array.from(paused),
  };
}

export function toCatalog({ version, handlers }: CatalogMessage): HandlerCatalog {
  return {
    version,
    handlers: Array.from(handlers, ({ name, patterns, firstSeenAt, lastSeenAt }) => ({
      name,
      patterns: Array.from(patterns),
      firstSeenAt: new Date(firstSeenAt),
      lastSeenAt: new Date(lastSeenAt),
    })),
  };
}

export function toActivity(rows: readonly ActivityRow[]): ActivityMinute[] {
  const minutes = new Map<number, ActivityRow[]>();
  for (const row of rows) minutes.set(row.minute, [...(minutes.get(row.minute) ?? []), row]);
  return Array.from(minutes, ([minute, found]) => ({
    startsAt: new Date(minute),
    // The row of all handlers together is written with every minute, and its name sorts first.
    total: toCounts(found[0]!),
    handlers: Object.fromEntries(found.slice(1).map((row) => [row.handler, toCounts(row)])),
  }));
}

function toCounts({ received, done, failed, dead, p50Ms, p95Ms }: ActivityRow): ActivityCounts {
  return { received, done, failed, dead, p50Ms, p95Ms };
}

function toDelivery(delivery: StoredDeliveryMessage): StoredDelivery {
  const { dueAt, finishedAt } = delivery;
  const history = toHistory(JSON.parse(delivery.history) as HistoryEntry[]);
  return { ...delivery, dueAt: toDate(dueAt), finishedAt: toDate(finishedAt), history };
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function toBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
