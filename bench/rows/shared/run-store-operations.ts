import { randomUUID } from 'node:crypto';
import { setTimeout as later } from 'node:timers';
import type { PaymentsRuntime } from 'nestjs-payments';
import type {
  InboxStore,
  IncomingEvent,
} from '../../../libs/payments/dist/inbox/store/inbox-store.js';

/** The system clocks and random numbers, for a store without an application. */
export const systemRuntime: PaymentsRuntime = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  random: () => Math.random(),
  schedule(ms, run) {
    const timer = later(run, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/**
 * Registers a worker with one handler, `book` by default. The lease of the worker is one hour, so the worker needs no
 * heartbeats.
 *
 * @returns the id of the worker
 */
export async function register(store: InboxStore, handler = 'book'): Promise<string> {
  const id = randomUUID();
  await store.register({
    id,
    leaseMs: 3_600_000,
    handlers: [{ name: handler, patterns: ['*'] }],
  });
  return id;
}

/**
 * Returns a new event for one handler, `book` by default, as a store receives it. The catalog version is correct for a
 * store in which only this handler was registered.
 */
export function incoming(raw: Buffer = Buffer.alloc(400, 'x'), handler = 'book'): IncomingEvent {
  return {
    company: 'default',
    id: randomUUID(),
    eventType: 'transaction.completed',
    occurredAt: new Date(),
    orderingKey: randomUUID(),
    raw,
    headers: {},
    stale: false,
    oncePerTransaction: true,
    handlers: [handler],
    catalogVersion: 1,
    assign: null,
    source: 'webhook',
    reference: null,
    summary: null,
    fulfils: false,
  };
}

/** Stores events. @throws Error if one of the events is not stored as new. */
export async function receive(store: InboxStore, events: readonly IncomingEvent[]): Promise<void> {
  const receipts = await store.receive(events);
  const other = receipts.find(({ outcome }) => outcome !== 'stored');
  if (other !== undefined) throw new Error(`An event was not stored, but ${other.outcome}.`);
}

/** Claims at most `limit` deliveries of the handler `book`. */
export function claim(
  store: InboxStore,
  worker: string,
  limit: number,
): ReturnType<InboxStore['claim']> {
  return store.claim({ workerId: worker, wanted: [{ handler: 'book', limit }] });
}

/** Opens the store, completes one event, and closes the store. */
export async function completeOne(store: InboxStore): Promise<void> {
  await store.open();
  const worker = await register(store);
  await receive(store, [incoming()]);
  for (const lease of await claim(store, worker, 1)) await store.complete(lease);
  await store.retire(worker, 0);
  await store.close();
}

/** Calls `work` for all items. At most `width` calls run at the same time. */
export async function concurrently<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const item = items[next]!;
      next += 1;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: width }, worker));
}
