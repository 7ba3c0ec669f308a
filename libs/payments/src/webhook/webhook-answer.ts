import type { ServerResponse } from 'node:http';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsErrorCode } from '../errors/payments-error.js';
import { RequestRejected } from './admission-check.js';

/** What a sender is answered: a status and a small JSON body. */
export interface WebhookAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Value of the header `Retry-After`, in seconds; no header if undefined. */
  readonly retryAfterSeconds?: number | undefined;
}

/** Status of each refusal. The application chooses that of `request_rejected`. */
export const REFUSAL_STATUS: Partial<Record<PaymentsErrorCode, number>> = {
  signature_missing: 401,
  signature_malformed: 401,
  signature_mismatch: 401,
  company_unknown: 401,
  payload_invalid: 400,
  payload_too_large: 413,
  content_type_unsupported: 415,
  content_encoding_unsupported: 415,
  body_timeout: 408,
  raw_body_unavailable: 500,
  webhook_busy: 503,
  directory_unavailable: 503,
  inbox_unavailable: 503,
  inbox_full: 503,
  handlers_failed: 503,
  deadline_passed: 503,
};

/** Refusals whose cause ends within seconds. */
const RETRY_AFTER_SECONDS: Partial<Record<PaymentsErrorCode, number>> = {
  directory_unavailable: 1,
  webhook_busy: 1,
};

/**
 * The answer to a delivery that was not received: the code and message of this package's own errors. Other errors are
 * not described to the sender, which sends the delivery again.
 */
export function answerError(error: unknown): WebhookAnswer {
  if (error instanceof RequestRejected) {
    const { status, code, message, retryAfterSeconds } = error;
    return { status, body: { statusCode: status, code, message }, retryAfterSeconds };
  }
  const status = error instanceof PaymentsError ? REFUSAL_STATUS[error.code] : undefined;
  if (status === undefined) {
    const message = 'The delivery could not be received; the log says why.';
    return { status: 503, body: { statusCode: 503, code: 'inbox_unavailable', message } };
  }
  const { code, message } = error as PaymentsError;
  const retryAfterSeconds = RETRY_AFTER_SECONDS[code];
  return { status, body: { statusCode: status, code, message }, retryAfterSeconds };
}

/** What this package needs of a Fastify reply; it does not depend on Fastify. */
export interface FastifyReplyLike {
  code(status: number): FastifyReplyLike;
  header(name: string, value: string): FastifyReplyLike;
  send(body: unknown): FastifyReplyLike;
}

/** Answers on a Fastify reply. */
export function sendReply(
  reply: FastifyReplyLike,
  { status, body, retryAfterSeconds }: WebhookAnswer,
): FastifyReplyLike {
  if (retryAfterSeconds !== undefined) reply.header('retry-after', `${retryAfterSeconds}`);
  return reply.code(status).send(body);
}

/**
 * Answers on Node's own response. Express's `json()` would compute an ETag, which no sender needs, and write
 * the body separately.
 */
export function sendAnswer(response: ServerResponse, answer: WebhookAnswer): void {
  const { status, body, retryAfterSeconds } = answer;
  // Other middleware may have answered meanwhile, for example one that limits the time of every request.
  if (response.headersSent) return;
  response.statusCode = status;
  response.setHeader('content-type', 'application/json; charset=utf-8');
  if (retryAfterSeconds !== undefined) response.setHeader('retry-after', retryAfterSeconds);
  response.end(JSON.stringify(body));
}
