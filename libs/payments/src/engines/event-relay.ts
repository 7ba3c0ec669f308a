import { Inject, Injectable } from '@nestjs/common';
import { COMPANIES } from '../companies/company.js';
import type { Companies } from '../companies/company.js';
import { HandlerRegistry } from '../events/handler-registry.js';
import type { PaymentEvent, PaymentEventContext } from '../events/payment-event.js';
import { exponential } from '../events/retry-schedule.js';
import { AttemptContext } from '../inbox/work/attempt.js';
import { PAYMENTS_RUNTIME } from '../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import type { EventRelay } from './engine.js';
import { openEngine } from './engine-connection.js';
import { toMessage } from './engine-message.js';

/** Nest injection token of the option `relay`. The value is `null` if the option is not set. */
export const EVENT_RELAY = Symbol('PAYMENTS_EVENT_RELAY');

/** Name of the handler that hands events over. The deliveries of this handler are stored under this name. */
export const RELAY_HANDLER = 'relay';

/**
 * Limits of the handover. If an engine is down for a weekend, the deliveries must not become dead, and must not wait
 * long when the engine is up again: 1,000 attempts with waits of 5 to 10 minutes take at least three days.
 */
const LIMITS = {
  concurrency: 100,
  timeoutMs: 10_000,
  retry: exponential({ attempts: 1000, firstMs: 1000, exponent: 2, maxMs: 300_000 }),
};

/**
 * Hands each event over to an engine. The handover is a delivery like any other: it is retried, becomes a dead letter,
 * and is shown and redriven under the name {@link RELAY_HANDLER}.
 */
@Injectable()
export class RelayHandler {
  constructor(
    @Inject(EVENT_RELAY) private readonly relay: EventRelay | null,
    @Inject(COMPANIES) private readonly companies: Companies,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly registry: HandlerRegistry,
  ) {}

  /**
   * Adds the handler and connects to the engine, if the option `relay` is set. Call this method before the worker starts.
   *
   * @throws PaymentsError `engine_unsafe`.
   */
  async open(): Promise<void> {
    if (this.relay === null) return;
    const invoke = (event: PaymentEvent, context: PaymentEventContext): Promise<void> =>
      this.#handOver(this.relay!, event, context);
    this.registry.add({
      name: RELAY_HANDLER,
      source: 'the option "relay"',
      patterns: ['*'],
      options: LIMITS,
      invoke,
    });
    await openEngine('relay', this.relay, this.runtime);
  }

  async close(): Promise<void> {
    await this.relay?.close?.();
  }

  async #handOver(
    relay: EventRelay,
    event: PaymentEvent,
    context: PaymentEventContext,
  ): Promise<void> {
    const { company, source, raw, signal } = context;
    // An event of the module's own type is never delivered to this handler.
    const origin = source === 'poll' ? 'poll' : 'webhook';
    const facts = { company, origin, traceparent: AttemptContext.traceparentOf(context) } as const;
    await relay.publish(await toMessage(event, raw, facts, this.companies), { signal });
  }
}
