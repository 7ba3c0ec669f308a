import { OtherVersionError } from '../events/event.dispatcher.js';
import { nextRetryMs } from '../events/retry-schedule.js';
import type { RetrySchedule } from '../events/retry-schedule.js';
import { describeThrown, framesOf, isUnrecoverable } from '../events/thrown.js';
import type { RunServices } from './delivery-run.js';
import type { ClaimedDelivery, InboxStore, Settlement } from './inbox-store.js';

/** When a delivery to another version of its handler is due again, so that a process that has it can claim it. */
const OTHER_VERSION_MS = 1000;

/** What a handler threw, which may be anything. */
export interface Failure {
  readonly thrown: unknown;
}

/** What is to become of a delivery after an attempt. */
export interface Verdict {
  readonly settle: (store: InboxStore) => Promise<Settlement>;
  /** In how many milliseconds the delivery is due again; `null` if it is not. */
  readonly retryInMs: number | null;
  /** Call it once the delivery is settled. */
  readonly log: () => void;
}

/** An attempt that has ended. */
export interface EndedAttempt {
  readonly delivery: ClaimedDelivery;
  /** The delivery, for messages. */
  readonly name: string;
  readonly retry: RetrySchedule;
  /** Whether the application closes and has aborted the handler's signal. */
  readonly closing: boolean;
  readonly services: Pick<RunServices, 'logger' | 'throttled' | 'runtime' | 'catalog'>;
}

/** `failure` is `null` if the handler succeeded. */
export function verdictOf(failure: Failure | null, ended: EndedAttempt): Verdict {
  const { delivery, name, retry, closing, services } = ended;
  if (failure === null) {
    return { settle: (store) => store.complete(delivery), retryInMs: null, log: () => {} };
  }
  const { thrown } = failure;
  const error = describeThrown(thrown);
  const what = `Delivery ${name} failed (attempt ${delivery.attempt} of ${retry.attempts})`;
  if (closing) {
    const line = `${what} as the application closes, so it is not charged. ${error}`;
    return {
      settle: (store) => store.release(delivery),
      retryInMs: null,
      log: () => services.logger.warn(line),
    };
  }
  if (
    thrown instanceof OtherVersionError &&
    services.catalog.takesElsewhere(delivery.handler, thrown.eventType)
  ) {
    const line = `Delivery ${name} is left to another version of the handler, so it is not charged. ${error}`;
    return {
      settle: (store) => store.release(delivery, OTHER_VERSION_MS),
      retryInMs: OTHER_VERSION_MS,
      log: () => services.throttled.warn(`version of ${delivery.handler}`, line),
    };
  }
  const retryInMs = isUnrecoverable(thrown)
    ? null
    : nextRetryMs(retry, delivery.attempt, services.runtime.random());
  return {
    settle: (store) => store.fail(delivery, { error, retryInMs }),
    retryInMs,
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
  return `${describeThrown(thrown)}${framesOf(thrown)}`;
}
