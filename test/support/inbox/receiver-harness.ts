import { HandlerRegistry } from '../../../libs/payments/src/events/handler-registry.js';
import { StoredBodies } from '../../../libs/payments/src/inbox/store/body-codec.js';
import {
  EventReceiver,
  VerifiedEvent,
} from '../../../libs/payments/src/inbox/receive/event-receiver.js';
import { HandlerCatalogCache } from '../../../libs/payments/src/inbox/store/handler-catalog-cache.js';
import type {
  ClaimedDelivery,
  InboxStore,
  StoredEvent,
} from '../../../libs/payments/src/inbox/store/inbox-store.js';
import { OutcomeWatches } from '../../../libs/payments/src/inbox/work/inbox-worker.js';
import type {
  InboxWorker,
  OutcomeWatch,
} from '../../../libs/payments/src/inbox/work/inbox-worker.js';
import { memoryStore } from '../../../libs/payments/src/stores/memory/memory-store.js';
import { resolveReceiveOptions } from '../../../libs/payments/src/inbox/receive/receive-options.js';
import type { ReceiveOptions } from '../../../libs/payments/src/inbox/receive/receive-options.js';
import { FakeRuntime } from '../time/fake-runtime.js';

/** Counts the open watches. */
export class CountedWatches extends OutcomeWatches {
  open = 0;

  override watch(company: string, id: string): OutcomeWatch {
    const watch = super.watch(company, id);
    const { end } = watch;
    let ended = false;
    this.open += 1;
    return Object.assign(watch, {
      end: () => {
        if (!ended) this.open -= 1;
        ended = true;
        end();
      },
    });
  }
}

/** A worker with one handler. It runs deliveries that are assigned to it, and claims when `wake` is called. */
export class FakeWorker {
  readonly ran: string[] = [];
  working = true;
  hasSlots = true;
  handle: (id: string) => unknown = () => {};

  constructor(
    private readonly store: InboxStore,
    readonly outcomes: OutcomeWatches,
  ) {}

  reserve(handlers: readonly string[]) {
    if (!this.hasSlots) return null;
    const start = (claimed: readonly ClaimedDelivery[] | null): void => this.#run(claimed ?? []);
    return { workerId: 'w', handlers, start };
  }

  wake(): void {
    void this.claim();
  }

  async claim(): Promise<void> {
    const wanted = [{ handler: 'h', limit: 10 }];
    this.#run(await this.store.claim({ workerId: 'w', wanted }));
  }

  #run(claimed: readonly ClaimedDelivery[]): void {
    for (const delivery of claimed) void this.#attempt(delivery);
  }

  async #attempt(delivery: ClaimedDelivery): Promise<void> {
    this.ran.push(delivery.id);
    let failed = false;
    try {
      await this.handle(delivery.id);
    } catch {
      failed = true;
    }
    if (failed) await this.store.fail(delivery, { error: 'no', retryInMs: 60_000 });
    else await this.store.complete(delivery);
    this.outcomes.report(delivery, failed ? 'failed' : 'done');
  }
}

/** A handler that throws an error with the message `no`. */
export const throwNo = (): never => {
  throw new Error('no');
};

/** A receiver with a memory inbox and one handler of the event types `t` and `transaction.*`. */
export function receiver(options: ReceiveOptions = {}, maxAgeMs = Infinity) {
  const runtime = new FakeRuntime();
  const limits = { maxEvents: 1000, maxBytes: 1e6 };
  const store: InboxStore = memoryStore(limits, runtime);
  const outcomes = new CountedWatches();
  const worker = new FakeWorker(store, outcomes);
  const registry = new HandlerRegistry();
  const patterns = ['t', 'transaction.*'];
  registry.add({ name: 'h', source: 'h', patterns, options: {}, invoke: async () => {} });
  const catalog = new HandlerCatalogCache(store, registry);
  const bodies = new StoredBodies(null, runtime);
  const asWorker = worker as unknown as InboxWorker;
  const made = new EventReceiver(
    store,
    resolveReceiveOptions(options),
    maxAgeMs,
    runtime,
    catalog,
    asWorker,
    bodies,
  );
  const receive = (
    id: string,
    data: Record<string, unknown> = {},
    { lateMs = 0, ageMs = 1000, eventType = 't', company = 'c' } = {},
  ) => {
    const timestamp = new Date(runtime.now() - ageMs).toISOString();
    const event = { id, eventType, timestamp, data, metadata: {} };
    const raw = Buffer.from(JSON.stringify({ ...event, timestamp: '' }));
    return made.receive(new VerifiedEvent(company, event, raw, runtime.monotonic() - lateMs));
  };
  const find = async (id: string): Promise<StoredEvent> => (await store.find('c', id))!;
  return { runtime, store, worker, outcomes, receive, made, find };
}
