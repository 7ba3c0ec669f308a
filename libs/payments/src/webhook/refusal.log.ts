import { Inject, Injectable, Logger } from '@nestjs/common';
import { PaymentsError } from '../payments.errors.js';
import type { PaymentsErrorCode } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';

/** Between two lines about one code, so that strangers cannot fill the log. */
const QUIET_MS = 60_000;

/**
 * Says in the log that deliveries are refused, and why: a wrong webhook secret refuses every real payment, and
 * nobody but the log would know. One line a code and minute, with how many there were.
 */
@Injectable()
export class RefusalLog {
  readonly #logger = new Logger('PaymentWebhook');
  readonly #refused = new Map<PaymentsErrorCode, { since: number; untold: number }>();

  constructor(@Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime) {}

  /** Notes a delivery that is answered 4xx; `company` only where it is a known one. */
  note(error: unknown, company?: string): void {
    if (!(error instanceof PaymentsError)) return;
    const { code, message } = error;
    const now = this.runtime.monotonic();
    const refused = this.#refused.get(code);
    if (refused !== undefined && now - refused.since < QUIET_MS) {
      refused.untold += 1;
      return;
    }
    const more = refused?.untold
      ? `, and ${refused.untold} more since the line before this one`
      : '';
    const whose = company === undefined ? '' : ` of company ${company}`;
    this.#refused.set(code, { since: now, untold: 0 });
    this.#logger.warn(`A delivery${whose} was refused (${code})${more}. ${message}`);
  }
}
