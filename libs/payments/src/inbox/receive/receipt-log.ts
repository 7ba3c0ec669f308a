import { LogLine } from '../../errors/log-line.js';
import { ModuleLogger } from '../../errors/module-logger.js';
import { ThrottledLog } from '../../errors/throttled-log.js';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { IncomingEvent } from '../store/inbox-store.js';
import type { ReceivedEvent } from './awaited-handlers.js';
import { POLL_ID, staleWarning } from './verified-event.js';

/** Logs receipts that an operator should know of. Lines that can be frequent are throttled. */
export class ReceiptLog {
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #unhandled: ThrottledLog;
  readonly #stale: ThrottledLog;
  readonly #repeats: ThrottledLog;

  constructor(
    private readonly runtime: PaymentsRuntime,
    private readonly catalog: HandlerCatalogCache,
    private readonly maxAgeMs: number,
  ) {
    this.#unhandled = new ThrottledLog(this.#logger, runtime);
    this.#stale = new ThrottledLog(this.#logger, runtime);
    this.#repeats = new ThrottledLog(this.#logger, runtime);
  }

  received({ receipt: { outcome, id: storedId }, event }: ReceivedEvent): void {
    const { id, company, eventType } = event;
    if (outcome === 'conflict') {
      this.#logger.error(
        new LogLine(
          `Event ${id} (company ${company}) was received again with another body. The first is kept and the ` +
            'second is not handled: ask the service which is right.',
          { company, id },
        ),
      );
    } else if (outcome !== 'stored') {
      // It is normal that a poll and a webhook request bring the same event, so this is not logged.
      const isPoll = event.source !== 'webhook' || storedId.startsWith(POLL_ID);
      if (storedId !== id && !isPoll) this.#logRepeat(storedId, event);
    } else if (eventType === TEST_EVENT_TYPE) {
      const line = `Test event ${id} of company ${company} arrived and its signature is valid.`;
      this.#logger.log(new LogLine(line, { company, id }));
    } else if (event.stale) {
      const line = () => staleWarning(event, this.runtime.now(), this.maxAgeMs);
      this.#stale.warn(eventType, () => new LogLine(line(), { company, id }));
    } else if (event.handlers.length === 0) this.#logUnhandled(event);
  }

  #logRepeat(first: string, { id, company, eventType }: IncomingEvent): void {
    this.#repeats.warn(
      `${eventType} of company ${company}`,
      () =>
        new LogLine(
          `Event ${id} (company ${company}) of type "${eventType}" has the transaction of event ${first}, and ` +
            '"oncePerTransaction" has the type. It was not handled; it is noted on the first event. If the service ' +
            'sends several events of this type per transaction, remove the type from "oncePerTransaction".',
          { company, id },
        ),
    );
  }

  #logUnhandled({ id, company, eventType }: IncomingEvent): void {
    this.#unhandled.warn(eventType, () => {
      const similar = this.catalog.similar(eventType);
      const hint =
        similar === undefined ? '' : ` Did you mean "${similar}", which a handler takes?`;
      return new LogLine(
        `No handler takes the event type "${eventType}", so event ${id} (company ${company}) is stored as ` +
          `unhandled.${hint} Once a handler takes the type, redrive it.`,
        { company, id },
      );
    });
  }
}
