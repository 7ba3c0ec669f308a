import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplicationContext } from '@nestjs/common';
import { HandlerRegistry } from '../events/handler-registry.js';
import { InboxWorker } from '../inbox/work/inbox-worker.js';
import type { InboxStore } from '../inbox/store/inbox-store.js';
import { INBOX_STORE } from '../inbox/store/inbox-store.js';

/** Time limit of {@link settled}. */
export interface SettledOptions {
  /**
   * Time limit in milliseconds, on the machine's clock and not on the clock of the `TestRuntime`. Default 4,000, which
   * is less than the time limit of a test in Jest and Vitest.
   */
  timeoutMs?: number;
}

const POLL_MS = 10;

/**
 * Resolves when no handler of the application runs, no delivery to its handlers is due, and no poll of an expected
 * payment runs or is due. Works with every inbox.
 *
 * The function does not wait for retries that are scheduled for later, nor for paused or dead deliveries. To run a
 * retry, advance the time with `TestRuntime`. To check a paused or dead delivery, read it with `PaymentInbox.get()`.
 *
 * @throws Error after `timeoutMs`. The message lists the running and the pending deliveries, of up to 10 events each.
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
  const worker = app.get(InboxWorker, { strict: false });
  const handlers = app.get(HandlerRegistry, { strict: false }).names();
  const end = performance.now() + timeoutMs;
  // A worker that is idle runs no poll.
  while (!worker.idle || !(await isSettled(store, handlers)) || !worker.idle) {
    if (performance.now() > end) throw new Error(await timeoutMessage(store, handlers, timeoutMs));
    await sleep(POLL_MS);
  }
}

/**
 * Returns whether no delivery runs or is due. The function first checks that no delivery runs, and counts the pending
 * deliveries. It then checks that no delivery is due. These reads are not one transaction, so the function repeats the
 * first read. If still no delivery runs and the count is the same, no delivery ran or became due in between.
 */
async function isSettled(store: InboxStore, handlers: readonly string[]): Promise<boolean> {
  const before = await pendingIfNoneRuns(store, handlers);
  if (before === null) return false;
  const dueInMs = await Promise.all([
    store.nextDueInMs(handlers),
    store.expectations.nextPollInMs(),
  ]);
  if (dueInMs.some((ms) => ms !== null && ms <= 0)) return false;
  return (await pendingIfNoneRuns(store, handlers)) === before;
}

/** Number of pending deliveries to the handlers; `null` if any delivery to them is running. */
async function pendingIfNoneRuns(
  store: InboxStore,
  handlers: readonly string[],
): Promise<number | null> {
  const { deliveries } = await store.stats();
  const own = deliveries.filter(({ handler }) => handlers.includes(handler));
  if (own.some(({ state }) => state === 'running')) return null;
  return own.reduce((sum, { state, count }) => (state === 'pending' ? sum + count : sum), 0);
}

async function timeoutMessage(
  store: InboxStore,
  handlers: readonly string[],
  timeoutMs: number,
): Promise<string> {
  const lines = [
    `The inbox has not settled within ${timeoutMs} ms. Running and pending deliveries:`,
  ];
  for (const state of ['running', 'pending'] as const) {
    const query = { filter: { state }, order: 'oldest', limit: 10, after: null } as const;
    const { events } = await store.list(query);
    for (const { id, company, deliveries } of events) {
      for (const { state: current, handler, attempts, lastError } of deliveries) {
        if (current !== state || !handlers.includes(handler)) continue;
        lines.push(
          `${handler} is ${state} for event ${id} of company ${company}, attempts: ${attempts}` +
            (lastError === null ? '' : `, last error: ${lastError}`),
        );
      }
    }
  }
  return lines.join('\n- ');
}
