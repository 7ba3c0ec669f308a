import type { Environment } from '../companies/company.js';

/**
 * State of a delivery attempt. `waiting`: the webhook request has not been sent yet, for example because of a delay.
 * `sending`: the webhook request has been sent, and no response has arrived yet. `delivered`: the response was a 2xx.
 * `failed`: another response, or no response. `dropped`: not sent because of a fault. `skipped`: the webhook is
 * inactive or has no URL. `cancelled`: the emulator was reset or closed.
 */
export type DeliveryState = (typeof DELIVERY_STATES)[number];

export const DELIVERY_STATES = [
  'waiting',
  'sending',
  'delivered',
  'failed',
  'dropped',
  'skipped',
  'cancelled',
] as const;

/** Cause of an attempt: the event, a duplicate of the event, a scheduled retry, or a manual redelivery. */
export type DeliveryCause = 'event' | 'duplicate' | 'retry' | 'redelivery';

/** Why an attempt did not end with a 2xx response. */
export interface DeliveryFailure {
  /**
   * - `status`: a response other than 2xx and 3xx.
   * - `redirect`: a 3xx response, because the emulator does not follow redirects.
   * - `timeout`: no response in time.
   * - `connection`: for example a refused or reset connection, or a TLS error.
   * - `private_host`: not sent, because the host is not public.
   * - `inactive`: not sent, because the webhook is inactive.
   * - `no_url`: not sent, because the webhook has no URL.
   * - `dropped`: not sent because of a fault.
   * - `cancelled`: the emulator was reset or closed.
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

/**
 * One attempt in the delivery log, with its webhook request and response. In the emulator, as in the contract of the
 * service, a delivery means sending one event to the webhook, with one or several attempts.
 */
export interface DeliveryAttempt {
  /** The id of the attempt, which the emulator generates. `redeliver()` takes this id. */
  readonly id: string;
  readonly companyId: string;
  readonly environment: Environment;
  readonly eventId: string;
  readonly eventType: string;
  /** Undefined if the event's data has no transaction id. */
  readonly transactionId: string | undefined;
  /** The client's own reference. Undefined if the event's data has no external reference. */
  readonly externalReference: string | undefined;
  /** Undefined if the event's data has no amount. */
  readonly amount: number | undefined;
  readonly cause: DeliveryCause;
  /** Number of the copy: 0 for the first delivery of the event; 1, 2, … for its duplicates. */
  readonly copy: number;
  /** Number of the attempt: 1 for the first attempt, and one more for each retry or manual redelivery. */
  readonly attempt: number;
  state: DeliveryState;
  /** The faults that applied to this attempt, such as `duplicate` or `tamperSignature`. */
  faults: string[];
  /** When the attempt was created. ISO 8601, UTC. */
  readonly createdAt: string;
  /** When the request was sent. ISO 8601, UTC. Undefined if the request was not sent. */
  sentAt: string | undefined;
  /** Milliseconds from the sending of the webhook request to the end of the attempt. */
  durationMs: number | undefined;
  /** The webhook request as it was sent, with the body as UTF-8 text. Undefined if no request was sent. */
  request:
    | {
        readonly url: string;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      }
    | undefined;
  /**
   * The receiver's response, with at most the first 4,096 bytes of its body as UTF-8 text. If other machines can reach
   * the emulator, this field contains only the first 256 bytes of the body and the header `content-type`.
   */
  response:
    | {
        readonly status: number;
        readonly headers: Readonly<Record<string, string>>;
        readonly body: string;
      }
    | undefined;
  failure: DeliveryFailure | undefined;
}
