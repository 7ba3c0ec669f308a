import type { DeliveryAttempt } from '../deliveries/delivery-attempt.js';
import type { Transaction } from '../transactions/transaction.js';
import { toTransactionFields } from '../transactions/transaction.js';

/** An error of a `/v1` endpoint, from which the response body is built. */
export interface ServiceError {
  readonly status: number;
  /** Human-readable reason. */
  readonly message: string;
}

/**
 * The bodies of `/v1` responses that the service does not document. The defaults are bodies that the emulator defines.
 * Replace a default to emulate the responses that your contract with the service describes, or to test that your client
 * does not depend on the default.
 */
export interface ResponseShapes {
  /** The body of `GET /v1/transactions/{id}`. Default: the five fields that `data` of the event contains. */
  readonly transaction: (transaction: Transaction) => unknown;
  /**
   * The body of `POST /v1/webhooks/test`. Default: `{ delivered, eventId, deliveryId, status, durationMs, error }`.
   * `status` is the status of the receiver's response or null, and `error` is `{ code, message }` or null.
   */
  readonly testDelivery: (delivery: DeliveryAttempt) => unknown;
  /** The body of every error under `/v1`. Default: `{ statusCode, message }`. */
  readonly error: (error: ServiceError) => unknown;
}

export const defaultResponseShapes: ResponseShapes = {
  transaction: toTransactionFields,
  testDelivery: (delivery) => ({
    delivered: delivery.state === 'delivered',
    eventId: delivery.eventId,
    deliveryId: delivery.id,
    status: delivery.response?.status ?? null,
    durationMs: delivery.durationMs ?? null,
    error: delivery.failure ?? null,
  }),
  error: ({ status, message }) => ({ statusCode: status, message }),
};
