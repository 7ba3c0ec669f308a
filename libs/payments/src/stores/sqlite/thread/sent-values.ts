import { types } from 'node:util';
import type {
  ClaimedDelivery,
  IncomingEvent,
  Lease,
  StoreReceipt,
} from '../../../inbox/store/inbox-store.js';

// Structured clone copies arguments to the thread and results from it. A body is sent only once, on receipt and in a claim.

/** An argument as the store sends it: bodies of events are copies, and leases have only the fields that identify them. */
export function toSent(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toSent);
  if (typeof value !== 'object' || value === null) return value;
  const { raw, event, token, seq, handler } = value as Partial<
    IncomingEvent & Lease & { event: unknown }
  >;
  if (token !== undefined) return { seq, handler, token };
  if (event) return { ...value, event: toSent(event) };
  // Structured clone would copy the whole pool of a pooled buffer.
  return raw === undefined ? value : { ...value, raw: new Uint8Array(raw) };
}

/** The fields of a lease that identify it. */
export type LeaseName = Pick<Lease, 'seq' | 'handler' | 'token'>;

/** A receipt whose claimed deliveries lack the body. */
export interface Receipt extends Omit<StoreReceipt, 'claimed'> {
  readonly claimed: readonly Omit<ClaimedDelivery, 'raw'>[];
}

/** Adds the body to the claimed deliveries of a receipt. */
export function withBodies(receipt: Receipt, { raw }: IncomingEvent): StoreReceipt {
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
