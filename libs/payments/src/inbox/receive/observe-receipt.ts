import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { errorFacts } from '../../telemetry/observers.js';
import { validTraceparent } from '../../telemetry/operation-span.js';
import type { Observers } from '../../telemetry/observers.js';
import type { EventDuplicateInfo } from '../../telemetry/payments-observer.js';
import type { ReceivedEvent } from './awaited-handlers.js';
import { VerifiedEvent } from './verified-event.js';

/** What {@link observeReceipt} uses. */
export interface ReceiptParts {
  readonly observers: Observers;
  readonly runtime: PaymentsRuntime;
}

/**
 * Stores an event within a span, and reports the result to the observers. The event is stored with the trace context of
 * the span, so that the spans of its attempts can link to it.
 */
export async function observeReceipt(
  verified: VerifiedEvent,
  parts: ReceiptParts,
  store: (event: VerifiedEvent) => Promise<ReceivedEvent | null>,
): Promise<ReceivedEvent | null> {
  const { observers, runtime } = parts;
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
  const span = observers.tracing
    ? observers.span({ kind: 'receive', traceparent, ...facts })
    : null;
  const startedAt = runtime.monotonic();
  let received: ReceivedEvent | null;
  try {
    received = await (span === null
      ? store(verified)
      : span.run(() => store(withTraceparent(verified, span.traceparent))));
  } catch (error) {
    span?.end({ outcome: 'failed', ...errorFacts(error) });
    throw error;
  }
  if (received === null) {
    span?.end({ outcome: 'not stored', error: null, errorCode: null });
    return null;
  }
  const { receipt, event: stored } = received;
  const info = { ...facts, durationMs: runtime.monotonic() - startedAt };
  if (receipt.outcome === 'stored') {
    const status = stored.stale ? 'stale' : stored.handlers.length > 0 ? 'stored' : 'unhandled';
    span?.end({ outcome: status, error: null, errorCode: null });
    const handlers = Object.freeze([...stored.handlers]);
    observers.notify('eventReceived', { ...info, status, handlers });
  } else {
    const reason = reasonOf(received);
    span?.end({ outcome: reason, error: null, errorCode: null });
    observers.notify('eventDuplicate', { ...info, storedId: receipt.id, reason });
  }
  for (const { reference, transactionId, by } of receipt.fulfilled) {
    const expectation = { company, reference, transactionId, eventId: receipt.id };
    observers.notify('expectationFulfilled', { ...expectation, by: by as 'webhook' | 'poll' });
  }
  return received;
}

function withTraceparent(verified: VerifiedEvent, traceparent: string | null): VerifiedEvent {
  if (traceparent === null) return verified;
  const { company, event, raw, arrivedAt, headers, source } = verified;
  return new VerifiedEvent(company, event, raw, arrivedAt, { ...headers, traceparent }, source);
}

function reasonOf({ event, receipt }: ReceivedEvent): EventDuplicateInfo['reason'] {
  if (receipt.outcome === 'conflict') return 'conflict';
  return receipt.id === event.id ? 'copy' : 'transaction';
}
