import { PaymentsError } from '../../errors/payments-error.js';

/**
 * A delivery that is not safe yet: `PaymentInbox.receive()` throws nothing else. `code` is `inbox_unavailable`,
 * `inbox_full`, `handlers_failed` or `deadline_passed`.
 *
 * If a controller throws it, the answer is 503, so that the sender sends the delivery again: Nest's own exception
 * filter, Express and Fastify read these getters, as they do of the errors of `http-errors`.
 */
export class PaymentInboxError extends PaymentsError {
  override readonly name = 'PaymentInboxError';

  get statusCode(): number {
    return 503;
  }

  get status(): number {
    return 503;
  }

  /** Whether the message may be sent to the client: it holds nothing of payload or handlers. */
  get expose(): boolean {
    return true;
  }
}

/** The delivery was not safe in time. */
export function deadlinePassed(deadlineMs: number): PaymentsError {
  return new PaymentsError(
    'deadline_passed',
    `The delivery was not safe ${deadlineMs} ms after it arrived. What has started continues; a copy waits for it.`,
  );
}

/** In an inbox that is not durable, handlers have not succeeded. */
export function handlersFailed(failed: number, all: number): PaymentsError {
  return new PaymentsError(
    'handlers_failed',
    `${failed} of ${all} handlers have not succeeded yet; the log says why. ` +
      'Only they run again when the delivery is sent again.',
  );
}

/** In an inbox that is not durable, the first event was deleted before it was known whether its handlers have succeeded. */
export function deletedMeanwhile(id: string): PaymentsError {
  return new PaymentsError(
    'inbox_unavailable',
    `The inbox deleted event ${id}, to make room, while a copy of it was received: send the delivery again.`,
  );
}
