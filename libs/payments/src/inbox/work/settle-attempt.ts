import type { Logger } from '@nestjs/common';
import type { ThrottledLog } from '../../errors/throttled-log.js';
import { OtherVersionError } from '../../events/event-dispatcher.js';
import { nextRetryMs } from '../../events/retry-schedule.js';
import type { RetrySchedule } from '../../events/retry-schedule.js';
import { describeError, framesOf, isUnrecoverable } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { ClaimedDelivery, InboxStore, SettleResult } from '../store/inbox-store.js';

/** How long this process keeps the place of a delivery to another version, so that a process with that one claims it. */
const OTHER_VERSION_MS = 1000;

/** What a handler threw, which may be anything. */
export interface HandlerFailure {
  readonly thrown: unknown;
}

/** What is to become of a delivery after an attempt. */
export interface SettleAction {
  readonly settle: (store: InboxStore, delivery: ClaimedDelivery) => Promise<SettleResult>;
  /** In how many milliseconds the delivery is due again; `null` if it is not. */
  readonly retryInMs: number | null;
  /** How long its place stays taken after it is settled, in milliseconds. */
  readonly keepPlaceMs: number;
  /** Call it once the delivery is settled. */
  readonly log: () => void;
}

const NOT_RETRIED = { retryInMs: null, keepPlaceMs: 0 };

/** The handler succeeded. */
export const SUCCEEDED: SettleAction = {
  ...NOT_RETRIED,
  settle: (store, delivery) => store.complete(delivery),
  log: () => {},
};
const release: SettleAction['settle'] = (store, delivery) => store.release(delivery);

/** What a verdict uses. */
export interface VerdictServices {
  readonly runtime: PaymentsRuntime;
  readonly logger: Logger;
  /** For what happens to many runs at the same time. */
  readonly throttled: ThrottledLog;
  readonly catalog: Pick<HandlerCatalogCache, 'refresh' | 'takesElsewhere'>;
}

/** An attempt that has ended. */
export interface EndedAttempt {
  readonly delivery: ClaimedDelivery;
  /** The delivery, for messages. */
  readonly name: string;
  readonly retry: RetrySchedule;
  /** Whether the application closes and has aborted the handler's signal. */
  readonly closing: boolean;
  readonly services: VerdictServices;
}

/** What becomes of a delivery whose attempt failed. */
export function verdictOf(failure: HandlerFailure, ended: EndedAttempt): SettleAction {
  const { delivery, name, retry, closing, services } = ended;
  const { thrown } = failure;
  const error = describeError(thrown);
  const what = `Delivery ${name} failed (attempt ${delivery.attempt} of ${retry.attempts})`;
  if (closing) {
    const line = `${what} as the application closes, so it is not charged. ${error}`;
    return {
      ...NOT_RETRIED,
      settle: release,
      log: () => services.logger.warn(line),
    };
  }
  if (
    OtherVersionError.is(thrown) &&
    services.catalog.takesElsewhere(delivery.handler, thrown.eventType)
  ) {
    const line = `Delivery ${name} is left to another version of the handler, so it is not charged. ${error}`;
    return {
      ...NOT_RETRIED,
      settle: release,
      keepPlaceMs: OTHER_VERSION_MS,
      log: () => services.throttled.warn(`version of ${delivery.handler}`, line),
    };
  }
  const retryInMs = isUnrecoverable(thrown)
    ? null
    : nextRetryMs(retry, delivery.attempt, services.runtime.random());
  return {
    settle: (store) => store.fail(delivery, { error, retryInMs }),
    retryInMs,
    keepPlaceMs: 0,
    log: () => {
      if (retryInMs === null) {
        services.logger.error(
          `${what} and is dead; it is kept and can be redriven. ${traced(thrown)}`,
        );
        return;
      }
      // The stack is the same each time: the first line and the last have it.
      const why = delivery.attempt === 1 ? traced(thrown) : error;
      services.logger.warn(`${what}; next attempt in ${retryInMs} ms. ${why}`);
    },
  };
}

/** What was thrown, with the first lines of its stack. */
export function traced(thrown: unknown): string {
  return `${describeError(thrown)}${framesOf(thrown)}`;
}
