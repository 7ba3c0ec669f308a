import { describe } from '@jest/globals';
import type { StoredDelivery, StoredEvent } from 'nestjs-payments';
import { PaymentInbox } from 'nestjs-payments';
import { signedDelivery } from './signed-delivery.js';
import type { DeliveryPayload, SignedDelivery } from './signed-delivery.js';
import { FakeRuntime } from '../time/fake-runtime.js';
import { ADAPTERS, SECRET, WebhookApplication } from './webhook-application.js';
import type { Setup } from './webhook-application.js';

/** Starts an application on the adapter under test. */
export type Start = (
  setup: Setup & { payments?: Exclude<Setup['payments'], false> },
) => Promise<WebhookApplication>;

/**
 * Declares the same promises for each HTTP adapter. Time stands still in the applications it starts, so that
 * nothing is tried again behind a test's back.
 */
export function onEachAdapter(promises: (start: Start) => void): void {
  describe.each(Object.keys(ADAPTERS))('on %s', (name) => {
    promises(({ payments, ...setup }) =>
      WebhookApplication.start({
        adapter: ADAPTERS[name]!(),
        payments: { runtime: new FakeRuntime(), ...payments },
        ...setup,
      }),
    );
  });
}

/** A delivery of the company `default`, signed. */
export function delivery(payload: DeliveryPayload = {}): SignedDelivery {
  return signedDelivery({ webhookSecret: SECRET }, payload);
}

/** The event as the inbox keeps it. */
export async function stored(app: WebhookApplication, id: string): Promise<StoredEvent> {
  const event = await app.app.get(PaymentInbox).get(id, 'default');
  if (event === undefined) throw new Error(`no event ${id} is kept`);
  return event;
}

/** Where the event's one delivery stands, or the one to the handler named. */
export async function storedDelivery(
  app: WebhookApplication,
  id: string,
  handler?: string,
): Promise<StoredDelivery> {
  const { deliveries } = await stored(app, id);
  const found = deliveries.find((one) => handler === undefined || one.handler === handler);
  if (found === undefined) throw new Error(`event ${id} has no such delivery`);
  return found;
}
