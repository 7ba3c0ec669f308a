import { Injectable } from '@nestjs/common';
import { HealthIndicatorService } from '@nestjs/terminus';
import type { HealthIndicatorResult } from '@nestjs/terminus';
import { checkFields, whole } from '../errors/option-checks.js';
import type { OptionChecks } from '../errors/option-checks.js';
import { EngineMonitor } from '../engines/engine-monitor.js';
import type { EngineState } from '../engines/engine-monitor.js';
import { errorCodeOf, PaymentsError } from '../errors/payments-error.js';
import { PaymentExpectations } from '../expectations/payment-expectations.js';
import { PaymentInbox } from '../inbox/payment-inbox.js';
import { COUNT_CAP } from '../inbox/store/stored-event.js';
import { withTimeLimit } from '../runtime/deadline.js';
import { systemRuntime } from '../runtime/payments-runtime.js';

/** Options of `PaymentsHealthIndicator.readiness()`. */
export interface PaymentsReadinessOptions {
  /** Milliseconds within which the store must respond, 10 to 60,000. Default 2,000. */
  timeoutMs?: number;
  /**
   * The status is `down` if the oldest unfinished delivery was received more than this many milliseconds ago. 0 to
   * 315,360,000,000 (10 years). Default: no limit.
   */
  maxOldestPendingMs?: number;
  /**
   * The status is `down` if more deliveries than this are dead. 0 to 9,999, because the check counts only up to 10,000.
   * Default: no limit.
   */
  maxDead?: number;
  /**
   * The status is `down` if more payments than this are overdue and it is unknown whether they were paid. 0 to 9,999.
   * Default: no limit.
   */
  maxOverdueUnknown?: number;
}

/**
 * Details of `PaymentsHealthIndicator.readiness()` if the store has responded. The details contain no payload and no
 * secret.
 */
export interface PaymentsHealthDetails {
  /** Milliseconds since the receipt of the oldest delivery that is pending or running; `null` if there is none. */
  readonly oldestPendingMs: number | null;
  /** Dead deliveries, at most 10,000 of each handler. */
  readonly dead: number;
  /** Expected payments that are overdue because the customer has not paid, at most 10,000. */
  readonly overdueUnpaid: number;
  /** Expected payments that are overdue, and for which it is unknown whether the customer has paid; at most 10,000. */
  readonly overdueUnknown: number;
  /** Names of the paused handlers, and `*` if all are paused. */
  readonly paused: readonly string[];
  /**
   * Whether the engine of `relay` or `source` is connected, with the lag and the dead letters of a worker service; missing
   * without an engine. Never makes the status `down`, because the inbox works without the engine.
   */
  readonly engine?: EngineState;
}

// A count never exceeds its cap.
const COUNT = { min: 0, max: COUNT_CAP - 1 };
const CHECKS = {
  timeoutMs: whole({ default: 2000, min: 10, max: 60_000, unit: 'milliseconds' }),
  maxOldestPendingMs: whole({ min: 0, max: 3650 * 86_400_000, unit: 'milliseconds' }),
  maxDead: whole({ ...COUNT, unit: 'deliveries' }),
  maxOverdueUnknown: whole({ ...COUNT, unit: 'payments' }),
} satisfies OptionChecks<PaymentsReadinessOptions>;

const LIMITS = {
  oldestPendingMs: 'maxOldestPendingMs',
  dead: 'maxDead',
  overdueUnknown: 'maxOverdueUnknown',
} as const;

/**
 * Health of the module, for `@nestjs/terminus` 11 and 12. Add this class to the providers of a module that imports
 * `TerminusModule` and can inject `PaymentInbox`.
 *
 * @example
 * ```ts
 * @Get('ready')
 * @HealthCheck()
 * ready() {
 *   return this.health.check([() => this.payments.readiness('payments', { timeoutMs: 1000 })]);
 * }
 * ```
 */
@Injectable()
export class PaymentsHealthIndicator {
  /** Simultaneous checks share one read, so that reads do not pile up if the store hangs. */
  #reading: Promise<PaymentsHealthDetails> | null = null;

  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly inbox: PaymentInbox,
    private readonly expectations: PaymentExpectations,
    private readonly engine: EngineMonitor,
  ) {}

  /**
   * Returns `up` as long as the process responds. Reads neither the store nor the service, because a restart of the
   * process would repair neither.
   */
  async liveness(key = 'payments'): Promise<HealthIndicatorResult> {
    return this.indicators.check(key).up();
  }

  /**
   * Returns `up` if the store responds and no limit of the options is exceeded. The result has the
   * {@link PaymentsHealthDetails} if the store has responded, `exceeded` with the names of the values above their
   * limits, and `error` with an error code if the store could not be read. Does not call the service.
   *
   * @throws PaymentsError `options_invalid` if an option does not exist or is out of bounds.
   */
  async readiness(
    key = 'payments',
    options: PaymentsReadinessOptions = {},
  ): Promise<HealthIndicatorResult> {
    const { timeoutMs, ...limits } = checkFields('readiness', options, CHECKS);
    const result = this.indicators.check(key);
    let details: PaymentsHealthDetails;
    try {
      details = await withTimeLimit(
        this.#read(),
        timeoutMs,
        systemRuntime,
        () => new PaymentsError('inbox_unavailable', `No response within ${timeoutMs} ms.`),
      );
    } catch (error) {
      // The message of an error of a database driver may contain the address of the server, so the result has a code only.
      return result.down({ error: errorCodeOf(error) ?? 'inbox_unavailable' });
    }
    const exceeded = (Object.keys(LIMITS) as (keyof typeof LIMITS)[]).filter(
      (value) => (details[value] ?? 0) > (limits[LIMITS[value]] ?? Infinity),
    );
    return exceeded.length === 0
      ? result.up({ ...details })
      : result.down({ ...details, exceeded });
  }

  #read(): Promise<PaymentsHealthDetails> {
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  async #readAll(): Promise<PaymentsHealthDetails> {
    const [stats, { overdueUnpaid, overdueUnknown }, engine] = await Promise.all([
      this.inbox.stats(),
      this.expectations.counts(),
      this.engine.state(),
    ]);
    const dead = stats.deliveries.filter(({ state }) => state === 'dead');
    return {
      oldestPendingMs: stats.oldestPendingMs,
      dead: dead.reduce((sum, { count }) => sum + count, 0),
      overdueUnpaid: overdueUnpaid.count,
      overdueUnknown: overdueUnknown.count,
      paused: stats.paused.map(({ handler }) => handler),
      ...(engine !== null && { engine }),
    };
  }
}
