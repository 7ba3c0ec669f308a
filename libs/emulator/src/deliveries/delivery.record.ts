import type { Environment } from '../companies/company.record.js';

/**
 * Where a delivery attempt stands. `waiting`: for its delay, its turn or its redelivery time.
 * `delivered`: answered 2xx. `failed`: anything else came, or nothing. `dropped`: by a fault.
 * `skipped`: the webhook is inactive or has no URL. `cancelled`: by a reset or a close.
 */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Every state. */
export const DELIVERY_STATES = [
  'waiting',
  'sending',
  'delivered',
  'failed',
  'dropped',
  'skipped',
  'cancelled',
] as const;

/** Why there is this attempt: the event itself, a duplicate, a scheduled retry, or by hand. */
export type DeliveryCause = 'event' | 'duplicate' | 'retry' | 'redelivery';

/** Why an attempt did not end in a 2xx. */
export interface DeliveryFailure {
  /**
   * `status`: an answer outside 2xx; `redirect`: a 3xx, which is not followed; `timeout`;
   * `connection`: refused, reset, TLS and the like; `private_host`: the host is not public, and nothing
   * was sent; `inactive` and `no_url`: nothing was sent;
   * `dropped`: a fault kept it back; `cancelled`.
   */
  readonly code:
    | 'status'
    | 'redirect'
    | 'timeout'
    | 'connection'
    | 'private_host'
    | 'inactive'
    | 'no_url'
    | 'dropped'
    | 'cancelled';
  readonly message: string;
}

/** One attempt in the delivery log: what was sent, and what was answered. */
export interface DeliveryRecord {
  /** The emulator's own id, to redeliver by. */
  readonly id: string;
  readonly companyId: string;
  readonly environment: Environment;
  readonly eventId: string;
  readonly eventType: string;
  /** Where the event is about a transaction. */
  readonly transactionId: string | undefined;
  readonly cause: DeliveryCause;
  /** 0 for the event's first delivery, 1 and on for its duplicates. */
  readonly copy: number;
  /** Counts from 1; scheduled retries raise it. */
  readonly attempt: number;
  state: DeliveryState;
  /** The faults that struck this attempt, such as `duplicate` or `tamperSignature`. */
  faults: string[];
  /** ISO 8601, UTC: when the attempt came to be. */
  readonly createdAt: string;
  /** When it was sent. */
  sentAt: string | undefined;
  /** Milliseconds from sending to the end of the attempt. */
  durationMs: number | undefined;
  /** What was sent, as it was sent. The body is shown as UTF-8 text. */
  request:
    | {
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      }
    | undefined;
  /**
   * What was answered; of the body at most the first 4,096 bytes, as UTF-8 text. If others can reach the emulator, the
   * first 256 bytes and of the headers `content-type`.
   */
  answer:
    | {
        readonly status: number;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      }
    | undefined;
  failure: DeliveryFailure | undefined;
}
