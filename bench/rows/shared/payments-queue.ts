import { sqliteInbox } from 'nestjs-payments/sqlite';
import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { delivery } from '../../load/webhook-requests.ts';
import type { PaymentsWorkerConfig } from '../../queues/payments-worker.ts';
import type { Queue } from '../../queues/queue.ts';
import { incoming, receive, register, systemRuntime } from './run-store-operations.ts';

/** The worker processes of an inbox. `store` is the same inbox; it stores the events, and pauses them until `begin()`. */
export function paymentsQueue(
  name: string,
  store: InboxStore,
  config: PaymentsWorkerConfig,
  handler?: string,
): Queue & Required<Pick<Queue, 'begin'>> {
  return {
    name,
    script: 'queues/payments-worker.ts',
    config,
    async fill(count) {
      await store.pause('*', true);
      await fill(store, count, handler);
    },
    begin: () => store.pause('*', false),
  };
}

/** Opens a SQLite store in `file` and registers the handler `book`. */
export async function openedSqlite(
  file: string,
  ending: AsyncDisposableStack,
): Promise<InboxStore> {
  const store = sqliteInbox({ file, allowOldSqlite: true }).create(systemRuntime);
  await store.open();
  await register(store);
  ending.defer(() => store.close());
  return store;
}

/** Stores `count` new events for one handler, `book` by default. */
export async function fill(store: InboxStore, count: number, handler?: string): Promise<void> {
  for (let left = count; left > 0; left -= 250) {
    const events = Array.from({ length: Math.min(250, left) }, () =>
      incoming(delivery('payments').body, handler),
    );
    await receive(store, events);
  }
}
