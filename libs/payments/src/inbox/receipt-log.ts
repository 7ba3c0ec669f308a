import { Logger } from '@nestjs/common';
import { ThrottledLog } from '../errors/throttled-log.js';
import { TEST_EVENT_TYPE } from '../events/payment-event.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { staleWarning } from './freshness.js';
import type { HandlerCatalogCache } from './handler-catalog-cache.js';
import type { IncomingEvent, StoreReceipt } from './inbox-store.js';

/** Logs what became of received events, if an operator should know. Lines that can be many are throttled. */
export class ReceiptLog {
  readonly #logger = new Logger('PaymentInbox');
  readonly #unhandled: ThrottledLog;
  readonly #stale: ThrottledLog;
  readonly #repeats: ThrottledLog;

  constructor(
    private readonly runtime: PaymentsRuntime,
    private readonly catalog: Pick<HandlerCatalogCache, 'similar'>,
    private readonly maxAgeMs: number,
  ) {
    this.#unhandled = new ThrottledLog(this.#logger, runtime);
    this.#stale = new ThrottledLog(this.#logger, runtime);
    this.#repeats = new ThrottledLog(this.#logger, runtime);
  }

  received({ outcome, id }: StoreReceipt, event: IncomingEvent): void {
    if (outcome === 'stored') this.#stored(event);
    else if (outcome === 'conflict') {
      this.#logger.error(
        `Event ${id} (company ${event.company}) was received again with another body. The first is kept and the ` +
          'second is not handled: ask the service which is right.',
      );
    } else if (id !== event.id) this.#repeat(id, event);
  }

  #stored(event: IncomingEvent): void {
    const { id, company, eventType } = event;
    if (eventType === TEST_EVENT_TYPE) {
      this.#logger.log(
        `Test delivery ${id} of company ${company} arrived and its signature is good.`,
      );
    } else if (event.stale) {
      this.#stale.warn(eventType, () => staleWarning(event, this.runtime.now(), this.maxAgeMs));
    } else if (event.handlers.length === 0) {
      this.#unhandled.warn(eventType, () => this.#noHandler(event));
    }
  }

  #repeat(first: string, { id, company, eventType }: IncomingEvent): void {
    this.#repeats.warn(
      `${company}\n${eventType}`,
      () =>
        `Event ${id} (company ${company}) of type "${eventType}" has the transaction of event ${first}, and ` +
        '"oncePerTransaction" has the type. It was not handled; it is noted on the first event. If the service sends ' +
        'several events of this type per transaction, remove the type from "oncePerTransaction".',
    );
  }

  #noHandler({ id, company, eventType }: IncomingEvent): string {
    const similar = this.catalog.similar(eventType);
    const hint = similar === undefined ? '' : ` Did you mean "${similar}", which a handler takes?`;
    return (
      `No handler takes the event type "${eventType}", so event ${id} (company ${company}) is stored as ` +
      `unhandled.${hint} Once a handler takes the type, redrive it.`
    );
  }
}
