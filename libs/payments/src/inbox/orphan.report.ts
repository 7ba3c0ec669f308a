import { Inject, Injectable, Logger } from '@nestjs/common';
import { HandlerRegistry } from '../events/handler.registry.js';
import { describeThrown } from '../events/thrown.js';
import { INBOX_STORE } from './inbox.tokens.js';
import type { InboxStore } from './store.contract.js';

/** Says at boot what the inbox keeps for handlers that this application does not have. */
@Injectable()
export class OrphanReport {
  readonly #logger = new Logger('PaymentInbox');

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
  ) {}

  /** Never rejects: it is a hint. */
  async report(): Promise<void> {
    try {
      const { deliveries } = await this.store.stats();
      const waiting = deliveries
        .filter(({ state }) => state === 'pending' || state === 'running')
        .filter(({ handler }) => this.registry.get(handler) === undefined);
      const counts = new Map<string, number>();
      for (const { handler, count } of waiting) {
        counts.set(handler, (counts.get(handler) ?? 0) + count);
      }
      for (const [handler, count] of counts) {
        this.#logger.warn(
          `Deliveries wait for the handler "${handler}" (${count} of them), which this application does not have. ` +
            "If its event types or its method's name changed, give it that name: @OnPaymentEvent(…, { name: '…' }). " +
            `If it is gone for good, take them out: PaymentInbox.skip({ handler: '${handler}', state: 'pending' }).`,
        );
      }
    } catch (error) {
      this.#logger.warn(`What waits for handlers could not be counted: ${describeThrown(error)}`);
    }
  }
}
