import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { HandlerRegistry } from '../events/handler-registry.js';
import type { DeliveryState, InboxStore } from '../inbox/store/inbox-store.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';

/** How long {@link settled} waits. */
export interface SettledOptions {
  /** Milliseconds, on the clock of the machine. Default 4,000: less than the time limit of a test in Jest and Vitest. */
  timeoutMs?: number;
}

const POLL_MS = 10;

/**
 * Resolves when no handler of the application runs and no delivery to one is due, in any inbox.
 *
 * A retry that is scheduled for later is not due, nor is a paused or dead delivery: move time with `TestRuntime`,
 * or read the delivery with `PaymentInbox.get()`.
 *
 * @throws Error after `timeoutMs`: it lists the deliveries that are still running or due.
 * @example
 * ```ts
 * await deliver(app, event); // 200: stored
 * await settled(app); // its handlers have run
 * ```
 */
export async function settled(
  app: INestApplicationContext,
  { timeoutMs = 4000 }: SettledOptions = {},
): Promise<void> {
  const store = app.get<InboxStore>(INBOX_STORE, { strict: false });
  const handlers = app.get(HandlerRegistry, { strict: false }).names();
  const end = performance.now() + timeoutMs;
  while (!(await isSettled(store, handlers))) {
    if (performance.now() > end) throw new Error(await describe(store, handlers, timeoutMs));
    await sleep(POLL_MS);
  }
}

/**
 * No delivery runs, so none is held behind one; then none is due; then still none runs and none has left the pending ones,
 * so nothing ran or became due in between.
 */
async function isSettled(store: InboxStore, handlers: readonly string[]): Promise<boolean> {
  const before = await pendingOfIdle(store, handlers);
  if (before === null) return false;
  const dueInMs = await store.nextDueInMs(handlers);
  if (dueInMs !== null && dueInMs <= 0) return false;
  return (await pendingOfIdle(store, handlers)) === before;
}

/** How many deliveries to the handlers are pending; `null` if one is running. */
async function pendingOfIdle(
  store: InboxStore,
  handlers: readonly string[],
): Promise<number | null> {
  const { deliveries } = await store.stats();
  const own = deliveries.filter(({ handler }) => handlers.includes(handler));
  if (own.some(({ state }) => state === 'running')) return null;
  return own.reduce((sum, { state, count }) => (state === 'pending' ? sum + count : sum), 0);
}

async function describe(
  store: InboxStore,
  handlers: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const lines = [
    ...(await unfinished(store, handlers, 'running')),
    ...(await unfinished(store, handlers, 'pending')),
  ];
  return [`The inbox has not settled within ${timeoutMs} ms. Not finished:`, ...lines].join('\n- ');
}

async function unfinished(
  store: InboxStore,
  handlers: readonly string[],
  state: DeliveryState,
): Promise<string[]> {
  const { events } = await store.list({
    filter: { state },
    order: 'oldest',
    limit: 10,
    after: null,
  });
  return events.flatMap(({ id, company, deliveries }) =>
    deliveries
      .filter((delivery) => delivery.state === state && handlers.includes(delivery.handler))
      .map(
        ({ handler, attempts, lastError }) =>
          `${handler} is ${state} for event ${id} of company ${company}, attempts: ${attempts}` +
          (lastError === null ? '' : `, last error: ${lastError}`),
      ),
  );
}
