import type { DeliveryRecord } from '../deliveries/delivery.record.js';
import type { Transaction } from '../transactions/transaction.record.js';
import { toTransactionFields } from '../transactions/transaction.record.js';

/** An error of a `/v1` endpoint before it has a body. */
export interface ServiceError {
  readonly status: number;
  /** For people. */
  readonly message: string;
}

/**
 * The bodies of `/v1` answers that the service's page does not show. The defaults are the
 * emulator's own; replace one to emulate what your contract says, or to prove that your client does
 * not lean on it.
 */
export interface AnswerShapes {
  /** `GET /v1/transactions/{id}`. Default: the five fields known from the event. */
  readonly transaction: (transaction: Transaction) => unknown;
  /**
   * `POST /v1/webhooks/test`. Default:
   * `{ delivered, eventId, deliveryId, status, durationMs, error }`, where `status` is the
   * receiver's answer or null, and `error` `{ code, message }` or null.
   */
  readonly testDelivery: (delivery: DeliveryRecord) => unknown;
  /** Every error of `/v1`. Default: `{ statusCode, message }`. */
  readonly error: (error: ServiceError) => unknown;
}

export const defaultShapes: AnswerShapes = {
  transaction: toTransactionFields,
  testDelivery: (delivery) => ({
    delivered: delivery.state === 'delivered',
    eventId: delivery.eventId,
    deliveryId: delivery.id,
    status: delivery.answer?.status ?? null,
    durationMs: delivery.durationMs ?? null,
    error: delivery.failure ?? null,
  }),
  error: ({ status, message }) => ({ statusCode: status, message }),
};
