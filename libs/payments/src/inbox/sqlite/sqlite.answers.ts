import { toHistory } from '../delivery-history.js';
import type { HistoryEntry } from '../delivery-history.js';
import type {
  ClaimedDelivery,
  InboxStats,
  StoredDelivery,
  StoredEvent,
  StoreReceipt,
} from '../inbox-store.js';
import type { ClaimedMessage } from './sqlite.claim.js';
import type { DeliveryMessage, EventAnswer } from './sqlite.rows.js';

// What the thread answered, as the contract says it. Every object and array is made anew: those of a message
// are plain data of Node's own realm, and under a test runner with realms of its own an `instanceof Date`,
// or a strict comparison, would tell.

export function toReceipts(receipts: readonly StoreReceipt[]): StoreReceipt[] {
  return Array.from(receipts, ({ outcome, id }) => ({ outcome, id }));
}

export function toClaimed(claimed: readonly ClaimedMessage[]): ClaimedDelivery[] {
  return Array.from(claimed, (delivery) => ({
    ...delivery,
    receivedAt: new Date(delivery.receivedAt),
    raw: toBuffer(delivery.raw),
  }));
}

export function toEvent(event: EventAnswer): StoredEvent {
  return {
    ...event,
    occurredAt: new Date(event.occurredAt),
    receivedAt: new Date(event.receivedAt),
    raw: event.raw && toBuffer(event.raw),
    headers: JSON.parse(event.headers ?? '{}') as Record<string, string>,
    deliveries: Array.from(event.deliveries, toDelivery),
  };
}

export function toStats(stats: InboxStats): InboxStats {
  const deliveries = Array.from(stats.deliveries, (counted) => ({ ...counted }));
  return { ...stats, deliveries, paused: Array.from(stats.paused) };
}

function toDelivery(delivery: DeliveryMessage): StoredDelivery {
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
