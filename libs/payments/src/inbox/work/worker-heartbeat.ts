import { randomUUID } from 'node:crypto';
import type { ModuleLogger } from '../../errors/module-log.js';
import { describeError } from '../../errors/payments-error.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import type { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import type { HandlerDeclaration, InboxStore } from '../store/inbox-store.js';

/** How long {@link WorkerHeartbeat.retire} may take, even if the store does not respond, in milliseconds. */
const RETIRE_MS = 2000;

/**
 * Milliseconds that are added to the time between heartbeats, because a timer may run up to 1 ms early. With SQLite,
 * the fourth heartbeat after the death of another process must find that the lease of that process has ended.
 */
const TIMER_MS = 2;

/**
 * The shortest time between two registrations, in milliseconds. Without this limit, each failed claim would cause a
 * registration.
 */
const REGISTER_MS = 1000;

/** What a {@link WorkerHeartbeat} needs from its worker. */
export interface RegisteredWorker {
  readonly store: InboxStore;
  readonly catalog: HandlerCatalogCache;
  readonly runtime: PaymentsRuntime;
  readonly logger: ModuleLogger;
  readonly leaseMs: number;
  handlers(): readonly HandlerDeclaration[];
  /**
   * Called after each successful heartbeat, because claims may begin, and because the heartbeat may have freed
   * deliveries.
   */
  onSuccess(suspects: boolean): void;
  /** Called if the store declared that worker id dead and freed its deliveries. */
  onDeclaredDead(id: string): void;
}

/**
 * Registers this process as a worker, sends a heartbeat every quarter of `leaseMs`, and registers again under a new id
 * if the store declared the worker dead. A worker whose heartbeat failed is still registered, because only the store
 * declares a worker dead.
 */
export class WorkerHeartbeat {
  #id: string | null = null;
  /** When the last heartbeat that succeeded was sent, by the monotonic clock. */
  #succeededAt = -Infinity;
  /** Whether a heartbeat has to succeed before the next claim. */
  #unsure = false;
  #suspects = false;
  /** Former worker ids. Each id retires when the attempts that use this id have ended. */
  readonly #former = new Set<string>();
  /** How many attempts, reservations and claims of this process use a worker id. */
  readonly #uses = new Map<string, number>();
  /** When the process may register again, by the monotonic clock. */
  #registerAt = -Infinity;
  readonly #backoff: Backoff;
  #failing = false;
  #stopped = false;
  #sending: Promise<void> | null = null;
  #cancel: () => void = () => {};

  constructor(private readonly worker: RegisteredWorker) {
    this.#backoff = new Backoff(worker.runtime, STORE_BACKOFF);
  }

  /** Registers in the background, and retries until it succeeds. */
  start(): void {
    this.#send();
  }

  /**
   * The worker id to claim with. `null` if the process is not registered, or if the store may have declared the worker
   * dead because its last heartbeat was too long ago. In these cases, call {@link renew}.
   */
  get current(): string | null {
    return this.#fresh && !this.#unsure ? this.#id : null;
  }

  /** Sends a heartbeat at once if the process is registered and {@link current} is `null`. */
  renew(): void {
    if (this.#id !== null && this.current === null) this.#sendBeforeClaims();
  }

  /**
   * Sends a heartbeat after a pause in which the process may have been frozen. A late heartbeat declares no worker
   * dead. A process that is frozen between its heartbeats would send only late heartbeats, so it registers under a new
   * id instead.
   */
  resume(): void {
    if (this.#id !== null && !this.#fresh && !this.#failing) this.replace(this.#id);
    else this.#sendBeforeClaims();
  }

  /**
   * Whether a delivery that the worker id leases may start to run. The result is `false` if the store has declared the
   * id dead, or may have declared it dead because the last heartbeat was too long ago.
   */
  mayStart(id: string): boolean {
    return this.#fresh && (id === this.#id || this.#former.has(id));
  }

  /**
   * Registers under a new id after an operation with this id failed, because the id may lease deliveries that no
   * attempt runs. The old id retires when its attempts have ended, and the store then frees those deliveries.
   */
  replace(id: string): void {
    if (id !== this.#id) return;
    this.#former.add(id);
    this.#id = null;
    this.#sendBeforeClaims();
  }

  use(id: string): void {
    this.#uses.set(id, (this.#uses.get(id) ?? 0) + 1);
  }

  /** Ends a {@link use}. Retires the id if it was replaced and nothing else uses the id. */
  endUse(id: string): void {
    const left = this.#uses.get(id)! - 1;
    if (left > 0) this.#uses.set(id, left);
    else this.#uses.delete(id);
    if (left === 0 && this.#former.has(id) && !this.#failing) this.#send();
  }

  /** Stops the heartbeats. Running deliveries stay leased for `graceMs` more milliseconds. Never rejects. */
  async retire(graceMs: number): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    try {
      await withTimeLimit(this.#retireAll(graceMs), RETIRE_MS, this.worker.runtime);
    } catch (error) {
      this.worker.logger.warn(
        `The process is closing and could not end its leases in the payment inbox: ${describeError(error)}. Other ` +
          `processes can claim its deliveries ${this.worker.leaseMs} ms after its last heartbeat.`,
      );
    }
  }

  get #fresh(): boolean {
    const { runtime, leaseMs } = this.worker;
    return runtime.monotonic() - this.#succeededAt < leaseMs;
  }

  get #intervalMs(): number {
    return this.worker.leaseMs / 4 + TIMER_MS;
  }

  async #retireAll(graceMs: number): Promise<void> {
    await this.#sending;
    const ids = this.#id === null ? [...this.#former] : [...this.#former, this.#id];
    await Promise.all(ids.map(async (id) => this.worker.store.retire(id, graceMs)));
  }

  /** Sends a heartbeat, and allows no claim until it has succeeded. */
  #sendBeforeClaims(): void {
    this.#unsure = true;
    // If the store is down, the next heartbeat is scheduled already.
    if (!this.#failing) this.#send();
  }

  #send(): void {
    if (this.#stopped || this.#sending !== null) return;
    this.#cancel();
    this.#sending = this.#sendAll().then(
      () => this.#succeeded(),
      (error: unknown) => this.#failed(error),
    );
  }

  async #sendAll(): Promise<void> {
    const { store, runtime } = this.worker;
    for (const id of this.#former) {
      if (this.#uses.has(id)) await this.#sendFor(id);
      else {
        await store.retire(id, 0);
        this.#former.delete(id);
      }
    }
    let sentAt = runtime.monotonic();
    if (this.#id !== null) await this.#sendFor(this.#id);
    if (this.#id === null && !this.#stopped && runtime.monotonic() >= this.#registerAt) {
      sentAt = runtime.monotonic();
      await this.#register();
      this.#registerAt = sentAt + REGISTER_MS;
    }
    this.#succeededAt = sentAt;
    this.#unsure = false;
  }

  async #sendFor(id: string): Promise<void> {
    const { alive, suspects } = await this.worker.store.heartbeat(id);
    this.#suspects ||= suspects;
    if (alive) return;
    this.#former.delete(id);
    if (id === this.#id) this.#id = null;
    this.worker.onDeclaredDead(id);
  }

  async #register(): Promise<void> {
    const { store, leaseMs } = this.worker;
    // Each attempt to register uses a new id, because a failed attempt may have taken effect.
    const id = randomUUID();
    const catalog = await store.register({ id, leaseMs, handlers: this.worker.handlers() });
    this.worker.catalog.set(catalog);
    // The first heartbeat frees the deliveries of processes that died earlier.
    const { suspects } = await store.heartbeat(id);
    this.#suspects ||= suspects;
    this.#id = id;
  }

  #succeeded(): void {
    if (this.#failing) this.worker.logger.log('The payment worker sends heartbeats again.');
    this.#failing = false;
    this.#backoff.reset();
    this.#sendIn(this.#nextMs);
    if (this.#id === null || this.#stopped) return;
    this.worker.onSuccess(this.#suspects);
    this.#suspects = false;
  }

  /** How long to wait after a heartbeat that succeeded, in milliseconds. */
  get #nextMs(): number {
    // An id that became unused during the heartbeat retires at once.
    if ([...this.#former].some((id) => !this.#uses.has(id))) return 0;
    if (this.#id !== null) return this.#intervalMs;
    return Math.max(0, this.#registerAt - this.worker.runtime.monotonic());
  }

  #failed(error: unknown): void {
    if (!this.#failing) {
      this.worker.logger.error(
        `The payment worker could not send a heartbeat: ${describeError(error)}. It retries until it succeeds. Running ` +
          'attempts continue.',
      );
    }
    this.#failing = true;
    this.#sendIn(Math.min(this.#backoff.nextMs(), this.#intervalMs));
  }

  #sendIn(ms: number): void {
    this.#sending = null;
    if (this.#stopped) return;
    this.#cancel = this.worker.runtime.schedule(ms, () => this.#send());
  }
}
