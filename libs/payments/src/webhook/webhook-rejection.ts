import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../errors/module-log.js';
import { describeError, framesOf, PaymentsError } from '../errors/payments-error.js';
import type { PaymentsErrorCode } from '../errors/payments-error-code.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../telemetry/observers.js';

export interface WebhookResponse {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly retryAfterSeconds?: number | undefined;
}

/**
 * The HTTP status of the response to a rejected webhook request, by error code. `request_rejected` is missing, because
 * the check `webhook.before` chooses the status of its rejections.
 */
export const REJECTION_STATUS: Partial<Record<PaymentsErrorCode, number>> = {
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

/** The `Retry-After` in seconds, for the errors whose cause usually ends within seconds. */
const RETRY_AFTER_SECONDS: Partial<Record<PaymentsErrorCode, number>> = {
  directory_unavailable: 1,
  webhook_busy: 1,
};

/** The error for a webhook request that the check `webhook.before` rejected, or for which the check failed. */
export class AdmissionCheckError extends PaymentsError {
  constructor(
    readonly status: number,
    message: string,
    readonly retryAfterSeconds?: number,
    /** The cause, for the log only. The response does not contain the cause. */
    readonly reason = `The check "webhook.before" of the application returned status ${status}.`,
  ) {
    super('request_rejected', message);
  }
}

/**
 * The error for a webhook request that ended before its signature was verified, because the sender closed the
 * connection or other code of the application responded. No response can be sent any more, so this error is not logged.
 */
export class RequestClosedError extends Error {
  constructor() {
    super('The webhook request has ended');
  }
}

/**
 * Returns the response to a webhook request that failed with an error. The response contains the code and message of an
 * error of this package. For any other error, the status is 503, so that the service sends the event again, and the
 * response does not describe the error, because the error may contain secrets.
 */
export function rejectionResponse(error: unknown): WebhookResponse {
  if (error instanceof AdmissionCheckError) {
    const { status, code, message, retryAfterSeconds } = error;
    return { status, body: { statusCode: status, code, message }, retryAfterSeconds };
  }
  const status = error instanceof PaymentsError ? REJECTION_STATUS[error.code] : undefined;
  if (status === undefined) {
    const message = 'The event could not be received; the log contains the cause.';
    return { status: 503, body: { statusCode: 503, code: 'inbox_unavailable', message } };
  }
  const { code, message } = error as PaymentsError;
  const retryAfterSeconds = RETRY_AFTER_SECONDS[code];
  return { status, body: { statusCode: status, code, message }, retryAfterSeconds };
}

const RAW_BODY_UNAVAILABLE =
  'The signature of a webhook request cannot be checked, because other code read its body before this module could. ' +
  'If main.ts adds a body parser before Nest creates the application, add the parser later or exclude the webhook ' +
  'route from it. On Fastify, middleware of app.use() and of modules runs first: exclude the webhook route from it, or ' +
  'keep the bytes as request.rawBody. If WebhookGuard is a global guard, apply it to the route with @UseGuards instead.';

/**
 * Logs why webhook requests are rejected, at most once per minute and error code, and reports each rejection to the
 * observers. With a wrong webhook secret, every real event is rejected, and only the log shows the mistake.
 */
@Injectable()
export class RejectionLog {
  readonly #log: ThrottledLog;

  constructor(
    @Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime,
    private readonly observers: Observers = NO_OBSERVERS,
  ) {
    this.#log = new ThrottledLog(new ModuleLogger('PaymentWebhook'), runtime);
  }

  logUnexpected(error: unknown): void {
    if (error instanceof RequestClosedError) return;
    const message = 'A webhook request failed unexpectedly; the log contains the error.';
    const info = { code: 'inbox_unavailable', message, company: null, eventId: null } as const;
    this.observers.requestRejected(info);
    this.#log.error(
      'unexpected',
      `A webhook request failed unexpectedly: ${describeError(error)}${framesOf(error)}`,
    );
  }

  /** @param company id of a company that exists; `undefined` if the path names no company or an unknown one */
  logRejection(error: unknown, company?: string): void {
    if (!(error instanceof PaymentsError)) return;
    const { code } = error;
    const unread = code === 'raw_body_unavailable';
    const message = unread ? RAW_BODY_UNAVAILABLE : error.message;
    // Each status that the application's own check returns is logged separately, because each status has its own cause.
    const [subject, reason] =
      error instanceof AdmissionCheckError
        ? [`${code} ${error.status}`, error.reason]
        : [code, message];
    const info = { code, message: reason, company: company ?? null, eventId: null };
    this.observers.requestRejected(info);
    // The company directory has logged its own failure.
    if (code === 'directory_unavailable') return;
    if (unread) {
      this.#log.error(code, message);
      return;
    }
    const of = company === undefined ? '' : ` of company ${company}`;
    this.#log.warn(subject, `A webhook request${of} was rejected (${code}). ${reason}`, {
      company,
    });
  }
}
