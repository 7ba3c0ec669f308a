import { Inject, Injectable } from '@nestjs/common';
import { HandlerRegistry } from '../events/handler-registry.js';
import { PaymentsError } from '../payments.errors.js';
import { HandlerCatalogCache } from './handler-catalog-cache.js';
import type { ClaimedDelivery, IncomingEvent, InboxStore, StoreReceipt } from './inbox-store.js';
import { INBOX_STORE } from './inbox-tokens.js';
import { InboxWorker } from './inbox-worker.js';
import { StoredBodies } from './stored-bodies.js';

/** An event on its way into the store, before it is known which handlers it is delivered to. */
export type EventFacts = Omit<IncomingEvent, 'handlers' | 'catalogVersion' | 'assign'>;

/** An event as it was given to the store, and what became of it. */
export interface ReceivedEvent {
  readonly event: IncomingEvent;
  readonly receipt: StoreReceipt;
}

/** How often an event is received again because the handler catalog has changed meanwhile. */
const MAX_CATALOG_CHANGES = 10;

/** Stores events with a delivery to each handler that the database knows, and starts the deliveries it can at once. */
@Injectable()
export class EventStorage {
  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(HandlerCatalogCache) private readonly catalog: HandlerCatalogCache,
    @Inject(InboxWorker) private readonly worker: InboxWorker,
    @Inject(StoredBodies) private readonly bodies: StoredBodies,
  ) {}

  /**
   * Resolves once the event is as durable as the store makes it.
   *
   * @param body as it was received, for a comparison with the body of a known event
   * @throws PaymentsError `inbox_full`, `inbox_unavailable`; and what the store rejects with.
   */
  async add(facts: EventFacts, body: Buffer): Promise<ReceivedEvent> {
    for (let tries = 0; tries <= MAX_CATALOG_CHANGES; tries += 1) {
      const event: IncomingEvent = {
        ...facts,
        handlers: facts.stale ? [] : this.catalog.matching(facts.eventType),
        catalogVersion: this.catalog.current.version,
        assign: null,
      };
      const receipt = await this.#receive(event);
      if (receipt.outcome !== 'outdated') {
        return { event, receipt: await this.#compared(receipt, event, body) };
      }
      await this.catalog.refresh();
    }
    throw new PaymentsError(
      'inbox_unavailable',
      `The handler catalog changed ${MAX_CATALOG_CHANGES} times while the delivery was stored.`,
    );
  }

  /** If handlers of this process have free places, runs the event's deliveries to them at once. */
  async #receive(event: IncomingEvent): Promise<StoreReceipt> {
    const own = event.stale ? [] : this.registry.matching(event.eventType);
    const reservation = own.length === 0 ? null : this.worker.reserve(own);
    // `null`: it is unknown whether deliveries were assigned.
    let assigned: readonly ClaimedDelivery[] | null = null;
    try {
      const assign = reservation && {
        worker: reservation.worker,
        handlers: reservation.handlers,
      };
      const [receipt] = (await this.store.receive([{ ...event, assign }])) as [StoreReceipt];
      assigned = receipt.claimed;
      if (receipt.pending) this.worker.wake(own);
      return receipt;
    } catch (error) {
      if (error instanceof PaymentsError && error.code === 'inbox_full') assigned = [];
      throw error;
    } finally {
      reservation?.start(assigned);
    }
  }

  /** A codec that encrypts never returns the same bytes twice, so the store cannot compare the bodies. */
  async #compared(
    receipt: StoreReceipt,
    { company, id }: IncomingEvent,
    body: Buffer,
  ): Promise<StoreReceipt> {
    if (receipt.outcome !== 'conflict') return receipt;
    const find = () => this.store.find(company, id);
    const conflicts = await this.bodies.conflicts(body, find);
    return conflicts ? receipt : { ...receipt, outcome: 'duplicate' };
  }
}
