import type { PaymentsRuntime } from '../../payments.runtime.js';
import type { HandlerCatalog, KnownHandler, WorkerRegistration } from '../inbox-store.js';
import type { MemoryDeliveries } from './memory-deliveries.js';
import type { MemoryQueue } from './memory-queue.js';

interface WorkerRow extends WorkerRegistration {
  /** Last heartbeat, on the monotonic clock. */
  beatAt: number;
  /** When its grace ends, if it retired. */
  graceUntil: number | null;
}

/** The workers of a memory store, and the handlers that they have or had. */
export class MemoryWorkers {
  readonly #workers = new Map<string, WorkerRow>();
  readonly #handlers = new Map<string, KnownHandler>();
  #version = 0;

  constructor(
    private readonly deliveries: MemoryDeliveries,
    private readonly queue: MemoryQueue,
    private readonly runtime: PaymentsRuntime,
  ) {}

  get version(): number {
    return this.#version;
  }

  register(worker: WorkerRegistration): void {
    const beatAt = this.runtime.monotonic();
    this.#workers.set(worker.id, { ...worker, beatAt, graceUntil: null });
    this.#updateCatalog(worker);
  }

  /** Returns the names of the worker's handlers; `null` if it is not live. */
  heartbeat(id: string): string[] | null {
    const now = this.runtime.monotonic();
    const own = this.#workers.get(id);
    let late = false;
    if (own !== undefined && own.graceUntil === null) {
      late = now - own.beatAt > own.leaseMs;
      own.beatAt = now;
      this.#updateCatalog(own);
    }
    for (const worker of late ? [] : this.#workers.values()) {
      const { graceUntil, beatAt, leaseMs } = worker;
      if (graceUntil === null ? now - beatAt <= leaseMs : now < graceUntil) continue;
      this.#remove(worker);
      if (graceUntil !== null) this.deliveries.free(worker.id, false);
    }
    // This includes what was claimed for a worker that had already been declared dead.
    for (const holder of this.queue.running.keys()) {
      if (!this.#workers.has(holder)) this.deliveries.free(holder, true);
    }
    return this.#workers.get(id)?.handlers.map(({ name }) => name) ?? null;
  }

  retire(id: string, graceMs: number): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    if (this.queue.running.has(id)) worker.graceUntil = this.runtime.monotonic() + graceMs;
    else this.#remove(worker);
  }

  catalog(): HandlerCatalog {
    const handlers = [...this.#handlers.values()];
    return {
      version: this.#version,
      handlers: handlers.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    };
  }

  /** Removes a handler from the catalog; `false` if a live worker has it. */
  forget(handler: string): boolean {
    if (this.#patternsOf(handler).length > 0) return false;
    if (this.#handlers.delete(handler)) this.#version += 1;
    return true;
  }

  #remove(worker: WorkerRow): void {
    this.#workers.delete(worker.id);
    this.#updateCatalog(worker);
  }

  /** The patterns that live workers have for the handler; none if no live worker has it. */
  #patternsOf(handler: string): string[] {
    const patterns = [...this.#workers.values()].flatMap((worker) =>
      worker.handlers.flatMap(({ name, patterns }) => (name === handler ? patterns : [])),
    );
    return [...new Set(patterns)].toSorted();
  }

  #updateCatalog({ handlers }: WorkerRegistration): void {
    const now = new Date(this.runtime.now());
    for (const { name } of handlers) {
      const known = this.#handlers.get(name);
      const patterns = this.#patternsOf(name);
      // Of a handler that no live worker has, the catalog keeps what it had last.
      if (patterns.length === 0) continue;
      if (known?.patterns.join('\n') !== patterns.join('\n')) this.#version += 1;
      const firstSeenAt = known?.firstSeenAt ?? now;
      this.#handlers.set(name, { name, patterns, firstSeenAt, lastSeenAt: now });
    }
  }
}
