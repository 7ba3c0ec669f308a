import { PaymentsError } from '../../errors/payments-error.js';
import type { InboxStore } from '../store/inbox-store.js';
import type { OutcomeWatch } from '../work/attempt-outcomes.js';
import type { InboxWorker } from '../work/inbox-worker.js';
import type { ReceivedEvent } from './receipt-log.js';
import type { VerifiedEvent } from './verified-event.js';

/** The deadline of one webhook request. */
export interface ReceiveDeadline {
  passed: boolean;
  /** Called when the deadline passes. */
  onPassed: () => void;
}

/**
 * For an inbox that is not durable: waits until the handlers of an event have succeeded. Only then may the sender get a
 * 2xx response, because the event would be lost with the process.
 */
export class AwaitedHandlers {
  constructor(
    private readonly store: InboxStore,
    private readonly worker: Pick<InboxWorker, 'working' | 'outcomes' | 'wake'>,
  ) {}

  /**
   * Receives an event by `receive`, and resolves once its handlers have succeeded. For a copy of an event, runs the
   * handlers that have not succeeded yet.
   *
   * @throws PaymentsError `inbox_unavailable` and `handlers_failed`.
   */
  async receive(
    { company, storedId }: VerifiedEvent,
    deadline: ReceiveDeadline,
    receive: () => Promise<ReceivedEvent>,
  ): Promise<ReceivedEvent> {
    if (!this.worker.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'The application is closing or has not started, and its inbox is in memory: send the event again.',
      );
    }
    // The watch starts before the event is stored, so that it sees every attempt.
    let watch = this.worker.outcomes.watch(company, storedId);
    try {
      const received = await receive();
      const { id, outcome } = received.receipt;
      if (id !== storedId) {
        watch.end();
        watch = this.worker.outcomes.watch(company, id);
      }
      deadline.onPassed = () => watch.abandon();
      if (deadline.passed) watch.abandon();
      const handlers =
        outcome === 'stored' ? received.event.handlers : await this.#runAgain(company, id, watch);
      const failed = await watch.failures(handlers);
      if (failed.length > 0) {
        throw new PaymentsError(
          'handlers_failed',
          `${failed.length} of ${handlers.length} handlers have not succeeded yet; the log says why. ` +
            'Only they run again when the event is sent again.',
        );
      }
      return received;
    } finally {
      watch.end();
    }
  }

  /** Runs the handlers of a stored event that have not succeeded. Resolves with the handlers to wait for. */
  async #runAgain(company: string, id: string, watch: OutcomeWatch): Promise<readonly string[]> {
    const stored = await this.store.find(company, id);
    if (stored === undefined) {
      throw new PaymentsError(
        'inbox_unavailable',
        `The inbox deleted event ${id}, to make room, while a copy of it was received: send the event again.`,
      );
    }
    const handlers = stored.deliveries
      .filter(({ state }) => state !== 'done' && state !== 'skipped')
      .map(({ handler }) => handler);
    // A handler whose attempt has ended since the watch started does not run again for this copy.
    const redriven = handlers.filter((handler) => !watch.hasEnded(handler));
    if (redriven.length > 0) {
      const selection = { company, id, handlers: redriven };
      await this.store.redrive([selection], { force: false, dueInMs: [0] });
    }
    this.worker.wake();
    return handlers;
  }
}
