import type { Environment } from '../companies/company.js';

/**
 * State of a delivery attempt. `waiting`: for its delay, its turn or its redelivery time. `delivered`: the response was a
 * 2xx. `failed`: another response, or none. `dropped`: not sent because of a fault. `skipped`: the webhook is inactive or
 * has no URL. `cancelled`: by a reset or a close.
 */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** All states of a delivery attempt. */
export const DELIVERY_STATES = [
  'waiting',
  'sending',
  'delivered',
  'failed',
  'dropped',
  'skipped',
  'cancelled',
] as const;

/** Cause of an attempt: the event itself, a duplicate, a scheduled retry, or a manual redelivery. */
export type DeliveryCause = 'event' | 'duplicate' | 'retry' | 'redelivery';

/** Why an attempt did not end with a 2xx response. */
export interface DeliveryFailure {
  /**
   * `status`: a response other than 2xx and 3xx; `redirect`: a 3xx, which is not followed; `timeout`; `connection`: for
   * example refused, reset or a TLS error; `private_host`: the host is not public, nothing was sent; `inactive` and
   * `no_url`: nothing was sent; `dropped`: by a fault; `cancelled`: by a reset or a close.
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

/** One attempt in the delivery log: the request and the response. */
export interface DeliveryRecord {
  /** The emulator's own id of the attempt, used for redelivery. */
  readonly id: string;
  readonly companyId: string;
  readonly environment: Environment;
  readonly eventId: string;
  readonly eventType: string;
  /** Undefined if the event is not about a transaction. */
  readonly transactionId: string | undefined;
  readonly cause: DeliveryCause;
  /** 0 for the event's first delivery, from 1 on for its duplicates. */
  readonly copy: number;
  /** Counts from 1 and increases with each retry. */
  readonly attempt: number;
  state: DeliveryState;
  /** The faults that applied to this attempt, such as `duplicate` or `tamperSignature`. */
  faults: string[];
  /** When the attempt was created. ISO 8601, UTC. */
  readonly createdAt: string;
  /** When it was sent. ISO 8601, UTC. Undefined if it was not sent. */
  sentAt: string | undefined;
  /** Milliseconds from sending to the end of the attempt. */
  durationMs: number | undefined;
  /** The request as it was sent; the body as UTF-8 text. Undefined if nothing was sent. */
  request:
    | {
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      }
    | undefined;
  /**
   * The receiver's response, with at most the first 4,096 bytes of its body as UTF-8 text. If other machines can reach
   * the emulator: with the first 256 bytes, and only the header `content-type`.
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
