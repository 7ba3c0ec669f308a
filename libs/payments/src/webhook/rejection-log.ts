import { Injectable, Inject, Logger } from '@nestjs/common';
import { ThrottledLog } from '../errors/throttled-log.js';
import { describeError, framesOf, PaymentsError } from '../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { RequestClosed } from './pending-requests.js';
import { RequestRejected } from './admission-check.js';

const RAW_BODY_UNAVAILABLE =
  'The raw bytes of a delivery are gone, so its signature cannot be checked: something read the body before ' +
  'this module could. Mount it later (a body parser given to the HTTP adapter before Nest had it?), or have it ' +
  'leave this route alone; if WebhookGuard is a global guard, apply it to the route with @UseGuards instead.';

/**
 * Logs why deliveries are refused, once per code and minute: a wrong webhook secret refuses every real payment, and
 * only the log shows it.
 */
@Injectable()
export class RejectionLog {
  readonly #log: ThrottledLog;

  constructor(@Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime) {
    this.#log = new ThrottledLog(new Logger('PaymentWebhook'), runtime);
  }

  /** Logs an error that nothing in this package throws on purpose. */
  unexpected(error: unknown): void {
    if (error instanceof RequestClosed) return;
    this.#log.error(
      'unexpected',
      `A delivery could not be received: ${describeError(error)}${framesOf(error)}`,
    );
  }

  /** Logs a delivery that is refused before it reaches the inbox; `company` only if it is a known one. */
  note(error: unknown, company?: string): void {
    // The directory of companies has logged its own failure.
    if (!(error instanceof PaymentsError) || error.code === 'directory_unavailable') return;
    if (error.code === 'raw_body_unavailable') {
      this.#log.error(error.code, RAW_BODY_UNAVAILABLE);
      return;
    }
    const whose = company === undefined ? '' : ` of company ${company}`;
    const { code, message } = error;
    // The statuses of the application's own check differ in their cause.
    const [subject, reason] =
      error instanceof RequestRejected
        ? [`${code} ${error.status}`, error.reason]
        : [code, message];
    this.#log.warn(subject, `A delivery${whose} was refused (${code}). ${reason}`);
  }
}
