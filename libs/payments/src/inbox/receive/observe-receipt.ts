import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { errorFacts } from '../../telemetry/observers.js';
import { validTraceparent } from '../../telemetry/operation-span.js';
import type { Observers } from '../../telemetry/observers.js';
import type { EventDuplicateInfo } from '../../telemetry/payments-observer.js';
import type { InboxStore } from '../store/inbox-store.js';
import type { ReceivedEvent } from './awaited-handlers.js';
import { VerifiedEvent } from './verified-event.js';

/** Expectations of one transaction that are looked up at most. */
const MAX_EXPECTATIONS = 20;

/** What {@link observeReceipt} uses. */
export interface ReceiptParts {
  readonly observers: Observers;
  readonly runtime: PaymentsRuntime;
  readonly store: InboxStore;
}

/**
 * Stores an event within a span, and reports the result to the observers. The event is stored with the trace context of
 * the span, so that the spans of its attempts can link to it.
 */
export async function observeReceipt(
  verified: VerifiedEvent,
  parts: ReceiptParts,
  store: (event: VerifiedEvent) => Promise<ReceivedEvent>,
): Promise<ReceivedEvent> {
  const { observers, runtime } = parts;
  const { company, event, headers } = verified;
  const { transactionId } = event.data;
  const facts = {
    company,
    eventId: event.id,
    eventType: event.eventType,
    transactionId: typeof transactionId === 'string' && transactionId !== '' ? transactionId : null,
    source: verified.source as 'webhook' | 'poll' | 'overdue',
    occurredAtMs: Date.parse(event.timestamp),
  };
  const traceparent = validTraceparent(headers['traceparent']);
  const span = observers.tracing
    ? observers.span({ kind: 'receive', traceparent, ...facts })
    : null;
  const startedAt = runtime.monotonic();
  let received: ReceivedEvent;
  try {
    received = await (span === null
      ? store(verified)
      : span.run(() => store(withTraceparent(verified, span.traceparent))));
  } catch (error) {
    span?.end({ outcome: 'failed', ...errorFacts(error) });
    throw error;
  }
  const { receipt, event: stored } = received;
  const info = { ...facts, durationMs: runtime.monotonic() - startedAt };
  if (receipt.outcome === 'stored') {
    const status = stored.stale ? 'stale' : stored.handlers.length > 0 ? 'stored' : 'unhandled';
    span?.end({ outcome: status, error: null, errorCode: null });
    const handlers = Object.freeze([...stored.handlers]);
    observers.notify('eventReceived', { ...info, status, handlers });
    if (stored.fulfils && stored.source === 'webhook') void notifyFulfilled(received, parts);
  } else {
    const reason = reasonOf(received);
    span?.end({ outcome: reason, error: null, errorCode: null });
    observers.notify('eventDuplicate', { ...info, storedId: receipt.id, reason });
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

/** Looks up the expectations that a new event has fulfilled, after the receipt. Never rejects. */
async function notifyFulfilled(
  { event: { company, id, reference, orderingKey } }: ReceivedEvent,
  { observers, store: { expectations } }: ReceiptParts,
): Promise<void> {
  if (!observers.has('expectationFulfilled')) return;
  try {
    const state = 'fulfilled';
    const [named, page] = await Promise.all([
      reference === null ? undefined : expectations.find(company, reference),
      orderingKey === null
        ? undefined
        : expectations.list({
            filter: { company, state, transactionId: orderingKey },
            limit: MAX_EXPECTATIONS,
            after: null,
          }),
    ]);
    const found = new Map(
      [...(page?.expectations ?? []), ...(named === undefined ? [] : [named])]
        .filter(({ fulfilled }) => fulfilled?.eventId === id)
        .map((one) => [one.reference, one]),
    );
    for (const one of found.values()) {
      const { transactionId } = one;
      const info = { company, reference: one.reference, transactionId, eventId: id };
      observers.notify('expectationFulfilled', { ...info, by: 'webhook' });
    }
  } catch {
    // The store is down: only this report is lost.
  }
}
