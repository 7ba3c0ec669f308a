import { Logger } from '@nestjs/common';
import { ThrottledLog } from '../../errors/throttled-log.js';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { IncomingEvent, StoreReceipt } from '../store/inbox-store.js';

/** The units of {@link inWords} with their milliseconds, largest first. */
const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

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

/** The log line about an event that was stored as stale. */
export function staleWarning(
  { company, id, eventType, occurredAt }: IncomingEvent,
  nowMs: number,
  maxAgeMs: number,
): string {
  const age = inWords(nowMs - occurredAt.getTime());
  return (
    `Event ${id} (company ${company}) of type "${eventType}" is from ${occurredAt.toISOString()}, ${age} ago, and ` +
    `"webhook.maxAgeMs" is ${inWords(maxAgeMs)}. It may be a replay of an event whose id is no longer remembered, so it ` +
    'is stored as stale and no handler runs. If it is a late delivery, redrive it. If deliveries can be this late, ' +
    'raise "webhook.maxAgeMs" and, with a durable inbox, "worker.knowMs".'
  );
}

/** A time in the largest unit of which it has at least one, rounded down. */
function inWords(ms: number): string {
  const [unit, size] = UNITS.find((one) => ms >= one[1]) ?? UNITS[3];
  const count = Math.floor(ms / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
