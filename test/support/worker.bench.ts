import { Logger } from '@nestjs/common';
import { EventDispatcher } from '../../libs/payments/src/events/event.dispatcher.js';
import { HandlerRegistry } from '../../libs/payments/src/events/handler.registry.js';
import type {
  PaymentEvent,
  PaymentEventContext,
} from '../../libs/payments/src/events/payment-event.js';
import { StrayRejections } from '../../libs/payments/src/events/stray-rejections.js';
import { InboxWorker } from '../../libs/payments/src/inbox/inbox.worker.js';
import { MemoryStore } from '../../libs/payments/src/inbox/memory/memory.store.js';
import { Settlements } from '../../libs/payments/src/inbox/settlements.js';
import { StoredBodies } from '../../libs/payments/src/inbox/stored-bodies.js';
import { resolveWorkerOptions } from '../../libs/payments/src/inbox/worker-options.js';
import type { WorkerOptions } from '../../libs/payments/src/inbox/worker-options.js';
import { FakeRuntime } from './fake.runtime.js';

Logger.overrideLogger(false);

/** A worker at its store, with one handler that does what the test says. */
export class WorkerBench {
  readonly runtime = new FakeRuntime();
  readonly store = new MemoryStore(
    { maxEvents: 100_000, maxBytes: 1e9, retentionMs: 1e9 },
    this.runtime,
  );
  readonly registry = new HandlerRegistry();
  readonly settlements: Settlements;
  readonly ran: { id: string; context: PaymentEventContext }[] = [];
  handle: (event: PaymentEvent, context: PaymentEventContext) => unknown = () => {};
  readonly worker: InboxWorker;

  constructor(options: WorkerOptions = {}, settlements = new Settlements()) {
    const { registry } = this;
    this.settlements = settlements;
    registry.add({
      name: 'h',
      source: 'App.h',
      patterns: ['*'],
      invoke: async (event, context) => {
        this.ran.push({ id: event.id, context });
        await this.handle(event, context);
      },
    });
    this.worker = new InboxWorker(
      this.store,
      resolveWorkerOptions(options),
      this.runtime,
      registry,
      new EventDispatcher(registry, new StrayRejections()),
      this.settlements,
      new StoredBodies(null, this.runtime),
    );
  }

  async receive(id: string, orderingKey: string | null = null): Promise<void> {
    const timestamp = new Date(0).toISOString();
    const raw = Buffer.from(JSON.stringify({ id, eventType: 't', timestamp, data: {} }));
    const keys = { company: 'c', id, dedupeKey: id, eventType: 't', orderingKey };
    const occurredAt = new Date(timestamp);
    await this.store.receive([
      { ...keys, occurredAt, raw, headers: {}, stale: false, handlers: ['h'] },
    ]);
    this.worker.wake();
  }

  async delivery(id: string) {
    return (await this.store.find('c', id))!.deliveries[0]!;
  }

  async isDone(id: string): Promise<boolean> {
    return (await this.delivery(id)).state === 'done';
  }
}

/** Lets whatever is ready happen. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
