import type { PollOutcome, StoredExpectation } from '../inbox/store/expectation-store.js';
import type { ClaimedDelivery, InboxStore } from '../inbox/store/inbox-store.js';
import type { SettleAction } from '../inbox/work/settle-attempt.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { errorFacts } from '../telemetry/observers.js';
import type { Observers } from '../telemetry/observers.js';

/** How a poll ended, and how to settle its delivery. */
export interface PollEnd {
  readonly action: SettleAction;
  readonly outcome: PollOutcome;
}

/** What {@link observePoll} uses. */
export interface PollParts {
  readonly observers: Observers;
  readonly runtime: PaymentsRuntime;
  readonly store: InboxStore;
}

/** Runs a poll within a span, and reports its result to the observers. Rejects as `poll` does. */
export async function observePoll(
  before: StoredExpectation,
  delivery: ClaimedDelivery,
  parts: PollParts,
  poll: () => Promise<PollEnd>,
): Promise<SettleAction> {
  const { observers, runtime } = parts;
  const { company, reference, transactionId } = before;
  const info = { company, reference, transactionId };
  const span = observers.tracing ? observers.span({ kind: 'poll', ...info }) : null;
  const startedAt = runtime.monotonic();
  const durationMs = (): number => runtime.monotonic() - startedAt;
  let ended: PollEnd;
  try {
    ended = await (span === null ? poll() : span.run(poll));
  } catch (error) {
    span?.end({ outcome: 'failed', ...errorFacts(error) });
    observers.notify('pollEnded', { ...info, result: 'failed', durationMs: durationMs() });
    throw error;
  }
  const { action, outcome } = ended;
  const { result, detail } = outcome;
  span?.end({ outcome: result, error: result === 'unknown' ? detail : null, errorCode: null });
  observers.notify('pollEnded', { ...info, result, durationMs: durationMs() });
  if (result === 'event' && before.fulfilled === null)
    void notifyFulfilled(before, delivery, parts);
  if (outcome.next !== 'overdue') return action;
  const log = (): void => {
    action.log();
    void notifyOverdue(before, parts);
  };
  return { ...action, log };
}

/**
 * Reports the expectation as fulfilled, unless the receipt of a webhook request has fulfilled it, which reports that.
 * Never rejects.
 */
async function notifyFulfilled(
  { company, reference }: StoredExpectation,
  { receivedAt, ageMs }: ClaimedDelivery,
  { observers, store }: PollParts,
): Promise<void> {
  if (!observers.has('expectationFulfilled')) return;
  try {
    const now = await store.expectations.find(company, reference);
    if (now === undefined || now.fulfilled === null) return;
    const { by, eventId } = now.fulfilled;
    if (by === 'webhook') {
      // The event may be older than the expectation or its transaction id, so that only the poll could connect the two.
      const event = await store.find(company, eventId);
      const claimedAt = receivedAt.getTime() + ageMs;
      if (event === undefined || event.receivedAt.getTime() > claimedAt) return;
    }
    const { transactionId } = now;
    const info = { company, reference, transactionId, by: by as 'webhook' | 'poll', eventId };
    observers.notify('expectationFulfilled', info);
  } catch {
    // The store is down: only this report is lost.
  }
}

/** Reports the expectation as overdue, unless an event has fulfilled it meanwhile. Never rejects. */
async function notifyOverdue(
  { company, reference }: StoredExpectation,
  { observers, store }: PollParts,
): Promise<void> {
  try {
    const now = await store.expectations.find(company, reference);
    if (now?.state !== 'overdue') return;
    const { transactionId } = now;
    observers.notify('expectationOverdue', { company, reference, transactionId });
  } catch {
    // The store is down: only this report is lost.
  }
}
