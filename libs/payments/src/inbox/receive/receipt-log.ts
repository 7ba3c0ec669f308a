import { LogLine, ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { TEST_EVENT_TYPE } from '../../events/payment-event.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { IncomingEvent, StoreReceipt } from '../store/inbox-store.js';
import { POLL_ID } from './verified-event.js';

/** An event as it was passed to the store, and what the store returned. */
export interface ReceivedEvent {
  readonly event: IncomingEvent;
  readonly receipt: StoreReceipt;
}

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

/** The log line about an event that was stored as stale. */
export function staleWarning(
  { company, id, eventType, occurredAt }: IncomingEvent,
  nowMs: number,
  maxAgeMs: number,
): string {
  const age = inWords(nowMs - occurredAt.getTime());
  return (
    `Event ${id} (company ${company}) of type "${eventType}" is from ${occurredAt.toISOString()}, ${age} ago, and ` +
    `"webhook.maxAgeMs" is ${inWords(maxAgeMs)}. It may be a replay of an event whose id was deleted, so it is stored as ` +
    'stale and no handler runs. If the event is only late, redrive it. If events can be this late, raise ' +
    '"webhook.maxAgeMs" and, with a durable inbox, "worker.retainIdsMs".'
  );
}

const UNITS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1000],
] as const;

/** A duration in the largest unit that fits into it at least once, rounded down. */
function inWords(ms: number): string {
  const [unit, size] = UNITS.find((one) => ms >= one[1]) ?? UNITS[3];
  const count = Math.floor(ms / size);
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
