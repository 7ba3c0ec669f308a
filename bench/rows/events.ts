import { randomUUID } from 'node:crypto';
import { setTimeout as later } from 'node:timers';
import type { IncomingEvent, InboxStore, PaymentsRuntime } from 'nestjs-payments';

/** The machine's own clocks and chance, for stores without an application around them. */
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
 * Registers a worker with the handler `book`, for an hour without heartbeats.
 *
 * @returns its id, to claim with
 */
export async function register(store: InboxStore): Promise<string> {
  const id = randomUUID();
  await store.register({
    id,
    leaseMs: 3_600_000,
    handlers: [{ name: 'book', patterns: ['*'] }],
  });
  return id;
}

/**
 * A new event for the handler `book`, as a store receives it. The catalog's version is that of a store where only `book`
 * was ever registered.
 */
export function incoming(raw: Buffer = Buffer.alloc(400, 'x')): IncomingEvent {
  return {
    company: 'default',
    id: randomUUID(),
    eventType: 'transaction.completed',
    occurredAt: new Date(),
    orderingKey: randomUUID(),
    raw,
    headers: {},
    stale: false,
    onceKey: randomUUID(),
    handlers: ['book'],
    catalogVersion: 1,
    assign: null,
  };
}

/** Stores events of {@link incoming}. @throws Error unless all are stored. */
export async function receive(store: InboxStore, events: readonly IncomingEvent[]): Promise<void> {
  const receipts = await store.receive(events);
  const other = receipts.find(({ outcome }) => outcome !== 'stored');
  if (other !== undefined) throw new Error(`An event was not stored, but ${other.outcome}.`);
}

/** Claims deliveries of `book`. */
export function claim(store: InboxStore, worker: string, limit: number) {
  return store.claim({ worker, wanted: [{ handler: 'book', limit }] });
}

/** Works on all items, `width` of them at a time. */
export async function lanes<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < items.length) {
      const item = items[next]!;
      next += 1;
      await work(item);
    }
  };
  await Promise.all(Array.from({ length: width }, lane));
}
