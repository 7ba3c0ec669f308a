import { validTraceparent } from '../../telemetry/observers.js';
import type { ObserverInfo, Observers } from '../../telemetry/observers.js';
import type { ReceivedEvent } from './receipt-log.js';
import { VerifiedEvent } from './verified-event.js';

/**
 * Stores an event within a span, and reports the result to the observers. The event is stored with the trace context of
 * the span, so that the spans of its attempts can link to it.
 */
export function observeReceipt(
  verified: VerifiedEvent,
  observers: Observers,
  store: (event: VerifiedEvent) => Promise<ReceivedEvent | null>,
): Promise<ReceivedEvent | null> {
  const { company, event, headers } = verified;
  const { transactionId } = event.data;
  const facts = {
    company,
    eventId: event.id,
    eventType: event.eventType,
    transactionId: typeof transactionId === 'string' && transactionId !== '' ? transactionId : null,
    source: verified.source,
    occurredAtMs: Date.parse(event.timestamp),
  };
  const traceparent = validTraceparent(headers['traceparent']);
  return observers.observe(
    { kind: 'receive', traceparent, ...facts },
    (own) => store(withTraceparent(verified, own)),
    ({ value: received, durationMs, error, errorCode }) => {
      if (!received) return { outcome: error === null ? 'not stored' : 'failed', error, errorCode };
      const outcome = notify(received, { ...facts, durationMs }, observers);
      return { outcome, error, errorCode };
    },
  );
}

/** Reports the receipt of an event. Returns its outcome. */
function notify(
  { receipt, event }: ReceivedEvent,
  info: Omit<ObserverInfo['eventReceived'], 'status' | 'handlers'>,
  observers: Observers,
): string {
  const { company } = info;
  let outcome: ObserverInfo['eventReceived']['status'] | ObserverInfo['eventDuplicate']['reason'];
  if (receipt.outcome === 'stored') {
    outcome = event.stale ? 'stale' : event.handlers.length > 0 ? 'stored' : 'unhandled';
    const handlers = Object.freeze([...event.handlers]);
    observers.notify('eventReceived', { ...info, status: outcome, handlers });
  } else {
    if (receipt.outcome === 'conflict') outcome = 'conflict';
    else outcome = receipt.id === event.id ? 'copy' : 'transaction';
    observers.notify('eventDuplicate', { ...info, storedId: receipt.id, reason: outcome });
  }
  for (const { reference, transactionId, by } of receipt.fulfilled) {
    const expectation = { company, reference, transactionId, eventId: receipt.id };
    observers.notify('expectationFulfilled', { ...expectation, by: by as 'webhook' | 'poll' });
  }
  return outcome;
}

function withTraceparent(verified: VerifiedEvent, traceparent: string | null): VerifiedEvent {
  if (traceparent === null) return verified;
  const { company, event, raw, arrivedAt, headers, source } = verified;
  return new VerifiedEvent(company, event, raw, arrivedAt, { ...headers, traceparent }, source);
}
