import { Logger } from '@nestjs/common';
import { EventDispatcher } from '../../../libs/payments/src/events/event-dispatcher.js';
import { HandlerRegistry } from '../../../libs/payments/src/events/handler-registry.js';
import type { HandlerOptions } from '../../../libs/payments/src/events/handler-registry.js';
import type {
  PaymentEvent,
  PaymentEventContext,
} from '../../../libs/payments/src/events/payment-event.js';
import { HandlerCatalogCache } from '../../../libs/payments/src/inbox/store/handler-catalog-cache.js';
import type {
  ClaimRequest,
  InboxStore,
  IncomingEvent,
  StoredDelivery,
  StoreReceipt,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { InboxWorker } from '../../../libs/payments/src/inbox/work/inbox-worker.js';
import type { OutcomeWatches } from '../../../libs/payments/src/inbox/work/inbox-worker.js';
import { memoryInbox } from '../../../libs/payments/src/stores/memory/memory-store.js';
import { sqliteInbox } from '../../../libs/payments/src/stores/sqlite/index.js';
import { StoredBodies } from '../../../libs/payments/src/inbox/store/body-codec.js';
import { resolveWorkerOptions } from '../../../libs/payments/src/inbox/work/worker-options.js';
import type { WorkerOptions } from '../../../libs/payments/src/inbox/work/worker-options.js';
import { incoming } from '../../store-contract/contract-fixtures.js';
import { FakeRuntime } from '../time/fake-runtime.js';
import { turns as eventLoopTurns } from '../time/waiting.js';

Logger.overrideLogger(false);

type Handle = (event: PaymentEvent, context: PaymentEventContext) => unknown;

/** Differences from the default: a memory store of its own, and one handler `h`. */
export interface HarnessSetup {
  /** Options of each handler, by name. */
  handlers?: Readonly<Record<string, HandlerOptions>>;
  /** Uses the store and the clock of this harness, as the next process would. Several at once need {@link WorkerHarness.shared}. */
  of?: Pick<WorkerHarness, 'store' | 'runtime'>;
}

/** A worker with a store and a fake clock. Its handlers call `handle`, which the test sets. */
export class WorkerHarness {
  readonly runtime: FakeRuntime;
  readonly store: InboxStore;
  readonly registry = new HandlerRegistry();
  readonly catalog: HandlerCatalogCache;
  readonly ran: { id: string; event: PaymentEvent; context: PaymentEventContext }[] = [];
  handle: Handle = () => {};
  readonly worker: InboxWorker;
  /** The store as this process uses it: after {@link crash}, calls do nothing and never resolve. */
  readonly ownStore: InboxStore;
  #crashed = false;

  /** A worker with a store that several processes may use: SQLite in memory. */
  static async shared(options?: WorkerOptions, setup?: HarnessSetup): Promise<WorkerHarness> {
    const runtime = new FakeRuntime();
    const store = sqliteInbox({ file: ':memory:' }).create(runtime);
    await store.open();
    return new WorkerHarness(options, { ...setup, of: { store, runtime } });
  }

  constructor(options: WorkerOptions = {}, setup: HarnessSetup = {}) {
    const { registry } = this;
    const { handlers = { h: {} }, of } = setup;
    this.runtime = of?.runtime ?? new FakeRuntime();
    this.store = of?.store ?? memoryInbox({ maxEvents: 100_000 }).create(this.runtime);
    for (const [name, own] of Object.entries(handlers)) {
      registry.add({
        name,
        source: `App.${name}`,
        patterns: ['*'],
        options: own,
        invoke: async (event, context) => {
          this.ran.push({ id: event.id, event, context });
          await this.handle(event, context);
        },
      });
    }
    this.catalog = new HandlerCatalogCache(this.store, registry);
    this.ownStore = this.#untilCrash(this.store);
    this.worker = new InboxWorker(
      this.ownStore,
      resolveWorkerOptions(options),
      this.runtime,
      registry,
      new EventDispatcher(registry),
      new StoredBodies(null, this.runtime),
      this.catalog,
    );
  }

  get outcomes(): OutcomeWatches {
    return this.worker.outcomes;
  }

  /** Ids of the events that ran, in order. */
  get ids(): string[] {
    return this.ran.map(({ id }) => id);
  }

  /** Stores an event as pending, and wakes the worker. */
  async receive(
    id: string,
    orderingKey: string | null = null,
    handlers: readonly string[] = this.registry.names(),
  ): Promise<void> {
    await this.#receive(id, { orderingKey, handlers });
    this.worker.wake(handlers);
  }

  /** Receives an event as `EventReceiver` does: handlers with a free slot run at once. Returns their names. */
  async assign(
    id: string,
    handlers = this.registry.names(),
    parsed: PaymentEvent | null = null,
  ): Promise<readonly string[]> {
    const reservation = this.worker.reserve(handlers);
    const { claimed, pending } = await this.#receive(id, { handlers, assign: reservation });
    const raw = bodyOf(id);
    reservation?.start(
      claimed.map((delivery) => ({ ...delivery, raw })),
      parsed,
    );
    if (pending) this.worker.wake();
    return claimed.map(({ handler }) => handler);
  }

  async delivery(id: string, handler = 'h'): Promise<StoredDelivery> {
    const { deliveries } = (await this.store.find('c', id))!;
    return deliveries.find((delivery) => delivery.handler === handler)!;
  }

  async isDone(id: string, handler = 'h'): Promise<boolean> {
    return (await this.delivery(id, handler)).state === 'done';
  }

  /** Stops the worker as a crash of its process would. */
  crash(): void {
    this.#crashed = true;
  }

  #untilCrash<T extends object>(part: T): T {
    return new Proxy(part, {
      get: (own, name) => {
        const value: unknown = Reflect.get(own, name);
        if (name === 'records') return this.#untilCrash(value as object);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]): unknown =>
          this.#crashed ? new Promise(() => {}) : value.apply(own, args);
      },
    });
  }

  async #receive(id: string, more: Partial<IncomingEvent>): Promise<StoreReceipt> {
    const { version } = await this.store.catalog();
    const [receipt] = await this.store.receive([
      incoming({
        company: 'c',
        id,
        eventType: 't',
        occurredAt: new Date(0),
        raw: bodyOf(id),
        handlers: this.registry.names(),
        catalogVersion: version,
        ...more,
      }),
    ]);
    return receipt!;
  }
}

function bodyOf(id: string): Buffer {
  const timestamp = new Date(0).toISOString();
  return Buffer.from(JSON.stringify({ id, eventType: 't', timestamp, data: {} }));
}

/** Turns the event loop ten times, so that pending promises resolve. */
export const turns = (): Promise<void> => eventLoopTurns(10);

/** Delays each `complete` until the returned function is called. */
export function delaySettlements({ store }: WorkerHarness): () => void {
  const { promise: allowed, resolve } = Promise.withResolvers<void>();
  const complete = store.complete.bind(store);
  store.complete = async (lease) => {
    await allowed;
    return complete(lease);
  };
  return resolve;
}

/** Makes each handler wait until the test calls its function in the returned array. */
export function blockHandlers(harness: WorkerHarness): (() => void)[] {
  const ends: (() => void)[] = [];
  harness.handle = () => new Promise<void>((resolve) => ends.push(resolve));
  return ends;
}

/** Records what the worker claims from its store. */
export function recordClaims({ store }: WorkerHarness): ClaimRequest['wanted'][] {
  const requests: ClaimRequest['wanted'][] = [];
  const claim = store.claim.bind(store);
  store.claim = (request) => {
    requests.push(request.wanted);
    return claim(request);
  };
  return requests;
}

/** Starts the worker, and waits until it is registered. */
export async function started(harness: WorkerHarness): Promise<WorkerHarness> {
  harness.worker.start();
  await turns();
  return harness;
}

/** Advances the clock second by second, and turns the event loop after each second. */
export async function pass(harness: WorkerHarness, seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second += 1) {
    harness.runtime.advance(1000);
    await turns();
  }
}
