import { randomUUID } from 'node:crypto';
import type { ClaimedDelivery, IncomingEvent, InboxStore } from '../../inbox/inbox-store.js';

/** How long leases are in the contract's cases, in milliseconds. */
export const LEASE_MS = 60_000;

/** An event with one handler `book`, with what is given in place of the rest. */
export function incoming(event: Partial<IncomingEvent> = {}): IncomingEvent {
  const id = event.id ?? randomUUID();
  return {
    company: 'acme',
    id,
    dedupeKey: id,
    eventType: 'transaction.completed',
    occurredAt: new Date('2025-11-20T10:00:00.000Z'),
    orderingKey: null,
    raw: Buffer.from(`{"id":"${id}"}`),
    headers: {},
    stale: false,
    handlers: ['book'],
    ...event,
  };
}

/** Claims for the handlers named. */
export function claim(
  store: InboxStore,
  handlers: readonly string[] = ['book'],
  limit = 100,
): Promise<ClaimedDelivery[]> {
  return store.claim({ handlers, limit, leaseMs: LEASE_MS });
}

/** Claims the one delivery that is due. */
export async function claimOne(store: InboxStore, handler = 'book'): Promise<ClaimedDelivery> {
  const [delivery, ...more] = await claim(store, [handler]);
  if (delivery === undefined || more.length > 0) {
    throw new Error(`expected one due delivery, found ${delivery ? more.length + 1 : 0}`);
  }
  return delivery;
}

/** State and attempts of an event's deliveries, by handler. */
export async function states(
  store: InboxStore,
  { id, company = 'acme' }: { id: string; company?: string },
): Promise<Record<string, string>> {
  const event = await store.find(company, id);
  return Object.fromEntries(
    (event?.deliveries ?? []).map(({ handler, state, attempts }) => [
      handler,
      `${state} ${attempts}`,
    ]),
  );
}
