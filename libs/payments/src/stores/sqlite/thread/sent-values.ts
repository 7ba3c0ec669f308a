import { types } from 'node:util';
import type { IncomingEvent, Lease, StoreReceipt } from '../../../inbox/store/inbox-store.js';
import type { Receipt } from '../sql/receive.js';
import type { LeaseName } from '../sql/settle.js';

// Structured clone copies arguments to the thread and results from it. A body is sent only once, on receipt and in a claim.

/** An event as the store sends it. The body is a copy: structured clone would copy the whole pool of a pooled buffer. */
export function toSent(event: IncomingEvent): IncomingEvent {
  return { ...event, raw: new Uint8Array(event.raw) as Buffer };
}

/** The fields of a lease that the thread needs: a claimed delivery is a lease with a body. */
export function leaseName({ seq, handler, token }: Lease): LeaseName {
  return { seq, handler, token };
}

/** Adds the body to the claimed deliveries of a receipt. */
export function toReceipt(receipt: Receipt, { raw }: IncomingEvent): StoreReceipt {
  return { ...receipt, claimed: receipt.claimed.map((delivery) => ({ ...delivery, raw })) };
}

/**
 * Copies a result that `postMessage` created in Node's own realm. A test runner with realms of its own, such as Jest, would
 * find its objects different from equal objects of the application. Bytes become a `Buffer` without a copy.
 */
export function adopt<T>(value: T): T;
export function adopt(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Array.from(value, adopt);
  if (types.isDate(value)) return new Date(value);
  if (types.isUint8Array(value)) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  const copy: Record<string, unknown> = { ...value };
  for (const name of Object.keys(copy)) copy[name] = adopt(copy[name]);
  return copy;
}
