import { Injectable } from '@nestjs/common';
import { OnPaymentEvent, PaymentInbox, exponential } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, PaymentsModuleOptions } from 'nestjs-payments';
import { webhookRequest } from '../webhook/handler-application.js';
import type { InboxData } from './durable-inboxes.js';
import { WebhookApplication } from '../webhook/webhook-application.js';
import type { Setup } from '../webhook/webhook-application.js';

export type Handle = (event: PaymentEvent, context: PaymentEventContext) => unknown;

/** Retries after 1 to 2 ms, so that a test need not wait. */
export const AT_ONCE = { retry: exponential({ firstMs: 1, maxMs: 1 }) };

/** Starts a merchant's application on the data. Each handler gets every event. */
export function startOn(
  data: Pick<InboxData, 'inbox'>,
  handlers: Readonly<Record<string, Handle>>,
  { main, ...payments }: Partial<PaymentsModuleOptions> & Pick<Setup, 'main'> = {},
): Promise<WebhookApplication> {
  class Handlers {}
  for (const [name, handle] of Object.entries(handlers)) {
    // A new function for each name: two names may share one `handle`.
    const value: Handle = (event, context) => handle(event, context);
    const method = { value, configurable: true, enumerable: false, writable: true };
    Object.defineProperty(Handlers.prototype, name, method);
    OnPaymentEvent('*', { name })(Handlers.prototype, name, method as never);
  }
  Injectable()(Handlers);
  return WebhookApplication.start({
    providers: [Handlers],
    payments: { inbox: data.inbox(), worker: AT_ONCE, ...payments },
    ...(main && { main }),
  });
}

/**
 * Sends an event and returns the status of the response. The type is `transaction.completed` or, if `data` is given,
 * `transaction.updated`, which is not limited to one per transaction.
 */
export async function post(
  app: WebhookApplication,
  id: string,
  data?: Record<string, unknown>,
): Promise<number> {
  const own = data && { eventType: 'transaction.updated', data };
  const { status } = await app.send(webhookRequest({ id, ...own }));
  return status;
}

export function inboxOf(app: WebhookApplication): PaymentInbox {
  return app.app.get(PaymentInbox);
}

/** State and attempts of an event's deliveries, by handler. */
export async function states(app: WebhookApplication, id: string): Promise<Record<string, string>> {
  const event = await inboxOf(app).get(id);
  return Object.fromEntries(
    (event?.deliveries ?? []).map(({ handler, state, attempts }) => [
      handler,
      `${state} ${attempts}`,
    ]),
  );
}
