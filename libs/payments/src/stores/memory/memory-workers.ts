import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type {
  HandlerCatalog,
  KnownHandler,
  WorkerRegistration,
} from '../../inbox/store/inbox-store.js';

interface WorkerRow extends WorkerRegistration {
  /** Last heartbeat, on the monotonic clock. */
  heartbeatAt: number;
  /** The end of the grace of a retired worker, on the monotonic clock; `null` for other workers. */
  graceUntil: number | null;
}

/** The workers of a memory store, and the handlers that these workers and earlier ones registered. */
export class MemoryWorkers {
  readonly #workers = new Map<string, WorkerRow>();
  readonly #handlers = new Map<string, KnownHandler>();
  #version = 0;

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** See `HandlerCatalog.version`. */
  get version(): number {
    return this.#version;
  }

  /** The worker, unless it was declared dead. It may have retired. */
  find(id: string): WorkerRegistration | undefined {
    return this.#workers.get(id);
  }

  register(worker: WorkerRegistration): void {
    const heartbeatAt = this.runtime.monotonic();
    this.#workers.set(worker.id, { ...worker, heartbeatAt, graceUntil: null });
    this.#updateCatalog(worker);
  }

  /** Renews the heartbeat of the worker, and removes dead workers. Returns the ids of the removed that had retired. */
  heartbeat(id: string): string[] {
    const now = this.runtime.monotonic();
    const own = this.#workers.get(id);
    if (own?.graceUntil === null) {
      const isLate = now - own.heartbeatAt > own.leaseMs;
      own.heartbeatAt = now;
      this.#updateCatalog(own);
      if (isLate) return [];
    }
    const dead = [...this.#workers.values()].filter(({ heartbeatAt, leaseMs, graceUntil }) =>
      graceUntil === null ? now - heartbeatAt > leaseMs : now >= graceUntil,
    );
    for (const worker of dead) this.#remove(worker);
    return dead.filter(({ graceUntil }) => graceUntil !== null).map((worker) => worker.id);
  }

  /** Removes a worker when its grace is over; at once if `graceMs` is `null`. */
  retire(id: string, graceMs: number | null): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    if (graceMs === null) this.#remove(worker);
    else worker.graceUntil = this.runtime.monotonic() + graceMs;
  }

  catalog(): HandlerCatalog {
    const handlers = [...this.#handlers.values()];
    handlers.sort((a, b) => (a.name < b.name ? -1 : 1));
    return { version: this.#version, handlers };
  }

  /** Removes a handler from the catalog. Returns `false` and changes nothing if a live worker has the handler. */
  forget(handler: string): boolean {
    if (this.#patternsOf(handler).length > 0) return false;
    if (this.#handlers.delete(handler)) this.#version += 1;
    return true;
  }

  #remove(worker: WorkerRow): void {
    this.#workers.delete(worker.id);
    this.#updateCatalog(worker);
  }

  /** The patterns that live workers registered for the handler; empty if no live worker has the handler. */
  #patternsOf(handler: string): string[] {
    const declared = [...this.#workers.values()].flatMap(({ handlers }) => handlers);
    const patterns = declared.flatMap(({ name, patterns }) => (name === handler ? patterns : []));
    return [...new Set(patterns)].toSorted();
  }

  #updateCatalog({ handlers }: WorkerRegistration): void {
    const lastSeenAt = new Date(this.runtime.now());
    for (const { name } of handlers) {
      const known = this.#handlers.get(name);
      const patterns = this.#patternsOf(name);
      // The catalog keeps the last patterns of a handler that no live worker has.
      if (patterns.length === 0) continue;
      if (known?.patterns.join('\n') !== patterns.join('\n')) this.#version += 1;
      const firstSeenAt = known?.firstSeenAt ?? lastSeenAt;
      this.#handlers.set(name, { name, patterns, firstSeenAt, lastSeenAt });
    }
  }
}
