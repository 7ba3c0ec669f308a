import { framesOf } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { errorFacts, validTraceparent } from '../../telemetry/observers.js';
import type { ObserverInfo, Observers } from '../../telemetry/observers.js';
import type { ClaimedDelivery, TracedEvent } from '../store/inbox-store.js';
import type { StoredEvent } from '../store/stored-event.js';

/** A value that a handler threw, wrapped in an object because a handler can throw `undefined`. */
export interface HandlerFailure {
  readonly thrown: unknown;
}

/** How an attempt ended, for observers. */
export interface ObservedEnd {
  readonly retryInMs: number | null;
  readonly observed: ObserverInfo['attemptEnded']['outcome'];
  /** When the outcome was stored, by the monotonic clock of the runtime. */
  readonly endedAt: number;
  /** The error of the handler. With the outcome `done`, it failed after its commit. */
  readonly failure: HandlerFailure | null;
}

/** Runs an attempt within a span, and reports its start and its end to the observers. `run` must not reject. */
export function observeAttempt<R extends ObservedEnd>(
  delivery: ClaimedDelivery,
  { observers, runtime }: { readonly observers: Observers; readonly runtime: PaymentsRuntime },
  run: () => Promise<R>,
): Promise<R> {
  const { company, id, handler, attempt, receivedAt, ageMs, source } = delivery;
  const info: ObserverInfo['attemptStarted'] = {
    company,
    eventId: id,
    handler,
    attempt,
    source,
    receivedAtMs: receivedAt.getTime(),
    ageMs,
  };
  const { traceparent, eventType } = delivery.traced ?? UNKNOWN;
  const operation = {
    kind: 'attempt',
    traceparent: validTraceparent(traceparent),
    eventType,
    ...info,
  } as const;
  observers.notify('attemptStarted', info);
  const startedAt = runtime.monotonic();
  return observers.observe(operation, run, ({ value }) => {
    const { observed, failure, retryInMs, endedAt } = value!;
    const facts = failure === null ? { error: null, errorCode: null } : errorFacts(failure.thrown);
    const ended = {
      ...info,
      ...facts,
      outcome: observed,
      durationMs: endedAt - startedAt,
      retryInMs: observed === 'failed' ? retryInMs : null,
      stack: failure === null ? '' : framesOf(failure.thrown),
    };
    observers.notify('attemptEnded', ended);
    if (observed === 'dead') observers.notify('deliveryDead', ended);
    return { outcome: observed, ...facts };
  });
}

/** A store of the application may not have the facts. */
const UNKNOWN: TracedEvent = { traceparent: null, eventType: null };

/** Facts of a stored event for the spans of its attempts. */
export function tracedEvent({
  eventType,
  headers,
}: Pick<StoredEvent, 'eventType' | 'headers'>): TracedEvent {
  return { traceparent: headers['traceparent'] ?? null, eventType };
}
