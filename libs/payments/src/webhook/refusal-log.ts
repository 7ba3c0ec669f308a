import { Inject, Injectable, Logger } from '@nestjs/common';
import { ThrottledLog } from '../errors/throttled-log.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';

/**
 * Logs why deliveries are refused, once per code and minute: a wrong webhook secret refuses every real payment, and
 * only the log shows it.
 */
@Injectable()
export class RefusalLog {
  readonly #log: ThrottledLog;

  constructor(@Inject(PAYMENTS_RUNTIME) runtime: PaymentsRuntime) {
    this.#log = new ThrottledLog(new Logger('PaymentWebhook'), runtime);
  }

  /** Logs a delivery that is answered 4xx; `company` only if it is a known one. */
  note(error: unknown, company?: string): void {
    if (!(error instanceof PaymentsError)) return;
    const whose = company === undefined ? '' : ` of company ${company}`;
    this.#log.warn(error.code, `A delivery${whose} was refused (${error.code}). ${error.message}`);
  }
}
