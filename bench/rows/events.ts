import { randomUUID } from 'node:crypto';
import { setTimeout as later } from 'node:timers';
import type { IncomingEvent, PaymentsRuntime } from 'nestjs-payments';

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

/** A new event for the handler `book`, as a store receives it. */
export function incoming(raw: Buffer = Buffer.alloc(400, 'x')): IncomingEvent {
  const id = randomUUID();
  return {
    company: 'default',
    id,
    dedupeKey: id,
    eventType: 'transaction.completed',
    occurredAt: new Date(),
    orderingKey: randomUUID(),
    raw,
    headers: {},
    stale: false,
    handlers: ['book'],
  };
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
