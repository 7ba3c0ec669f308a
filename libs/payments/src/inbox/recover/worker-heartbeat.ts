import { randomUUID } from 'node:crypto';
import type { Logger } from '@nestjs/common';
import { describeError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import type { HandlerCatalog, HandlerDeclaration, InboxStore } from '../store/inbox-store.js';

/** How long the end of a registration may take, whether the store answers or not. */
const RETIRE_MS = 2000;

/** Between two registrations, at least: claims that fail again and again must not cause one each. */
const REGISTER_MS = 1000;

/** What a registration needs of the worker. */
export interface RegisteredWorker {
  readonly store: InboxStore;
  readonly runtime: PaymentsRuntime;
  readonly logger: Logger;
  readonly leaseMs: number;
  handlers(): readonly HandlerDeclaration[];
  /** Whether this process runs deliveries, or reserves places, under that id. */
  holds(id: string): boolean;
  onRegistered(catalog: HandlerCatalog): void;
  /** A heartbeat succeeded: claims may begin or go on, and it may have freed deliveries. */
  onRenewed(): void;
  /** The store declared that id dead and freed its deliveries. */
  onDeclaredDead(id: string): void;
  /** Suspects wait to be claimed. */
  onSuspects(): void;
}

/**
 * The registration of this process as a worker: registers it, sends a heartbeat every third of `leaseMs`, and registers
 * it under a new id if the store declared it dead. A heartbeat that fails changes nothing: the store has the last word.
 */
export class WorkerHeartbeat {
  #id: string | null = null;
  /** When the last heartbeat that succeeded was sent, by the monotonic clock. */
  #renewedAt = -Infinity;
  /** Whether a heartbeat has to succeed before the next claim. */
  #unsure = false;
  #suspects = false;
  /** Ids that are not used for claims any more, but whose runs have not ended. */
  readonly #former = new Set<string>();
  /** When it may register again, by the monotonic clock. */
  #registerAt = -Infinity;
  readonly #backoff: Backoff;
  #failing = false;
  #stopped = false;
  #beating: Promise<void> | null = null;
  #cancel: () => void = () => {};

  constructor(private readonly worker: RegisteredWorker) {
    this.#backoff = new Backoff(worker.runtime, STORE_BACKOFF);
  }

  /** Registers in the background, for as long as it takes. */
  start(): void {
    this.#beat();
  }

  /**
   * The id to claim with; `null` if the process is not registered, or if its last heartbeat is so long ago that it may
   * have been declared dead. It then sends one at once.
   */
  current(): string | null {
    const sure = this.#fresh && !this.#unsure;
    if (this.#id !== null && !sure) this.renew();
    return sure ? this.#id : null;
  }

  /** Sends a heartbeat. Until it has succeeded, nothing is claimed. */
  renew(): void {
    this.#unsure = true;
    // If the store is down, the next heartbeat is due soon enough.
    if (!this.#failing) this.#beat();
  }

  /**
   * Sends a heartbeat after a time in which the process may have been frozen. A late heartbeat declares no worker dead, and
   * a process that is frozen between two heartbeats would send only late ones: it registers under a new id instead.
   */
  resume(): void {
    if (this.#id !== null && !this.#fresh && !this.#failing) this.replace(this.#id);
    else this.renew();
  }

  /**
   * Whether a delivery that was leased to an id may start to run: the id has not been declared dead, as far as is known,
   * and the last heartbeat is not so long ago that it may have been.
   */
  mayRun(id: string): boolean {
    return this.#fresh && (id === this.#id || this.#former.has(id));
  }

  /**
   * An operation that claims for that id failed, so that the id may hold deliveries that no run belongs to. A new id takes
   * its place. Once its known runs have ended, it retires, and the store frees the rest.
   */
  replace(id: string): void {
    if (id !== this.#id) return;
    this.#former.add(id);
    this.#id = null;
    this.renew();
  }

  /** A run under that id has ended. */
  ended(id: string): void {
    if (this.#former.has(id) && !this.worker.holds(id)) void this.check();
  }

  /** Sends a heartbeat at once, unless the store is down. Resolves when it has ended. */
  async check(): Promise<void> {
    if (!this.#failing) this.#beat();
    await this.#beating;
  }

  /** Stops the heartbeats. What still runs keeps its lease for `graceMs` more. Never rejects. */
  async retire(graceMs: number): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    const late = (): Error => new Error(`no answer within ${RETIRE_MS} ms`);
    try {
      await withTimeLimit(this.#retireAll(graceMs), RETIRE_MS, this.worker.runtime, late);
    } catch (error) {
      this.worker.logger.warn(
        `The payment worker could not sign off: ${describeError(error)}. If it still holds deliveries, they are freed ` +
          `${this.worker.leaseMs} ms after its last heartbeat.`,
      );
    }
  }

  /** Whether the last heartbeat that succeeded is at most a lease old. */
  get #fresh(): boolean {
    const { runtime, leaseMs } = this.worker;
    return runtime.monotonic() - this.#renewedAt < leaseMs;
  }

  async #retireAll(graceMs: number): Promise<void> {
    await this.#beating;
    const ids = this.#id === null ? [...this.#former] : [...this.#former, this.#id];
    await Promise.all(ids.map(async (id) => this.worker.store.retire(id, graceMs)));
  }

  #beat(): void {
    if (this.#stopped || this.#beating !== null) return;
    this.#cancel();
    this.#beating = this.#renewAll().then(
      () => this.#succeeded(),
      (error: unknown) => this.#failed(error),
    );
  }

  async #renewAll(): Promise<void> {
    const { store, runtime } = this.worker;
    for (const id of this.#former) {
      if (this.worker.holds(id)) await this.#renew(id);
      else {
        await store.retire(id, 0);
        this.#former.delete(id);
      }
    }
    let sentAt = runtime.monotonic();
    if (this.#id !== null) await this.#renew(this.#id);
    if (this.#id === null && !this.#stopped && runtime.monotonic() >= this.#registerAt) {
      sentAt = runtime.monotonic();
      await this.#register();
      this.#registerAt = sentAt + REGISTER_MS;
    }
    this.#renewedAt = sentAt;
    this.#unsure = false;
  }

  async #renew(id: string): Promise<void> {
    const { alive, suspects } = await this.worker.store.heartbeat(id);
    this.#suspects ||= suspects;
    if (alive) return;
    this.#former.delete(id);
    if (id === this.#id) this.#id = null;
    this.worker.onDeclaredDead(id);
  }

  async #register(): Promise<void> {
    const { store, leaseMs } = this.worker;
    // A new one each time: an attempt that failed may have taken effect.
    const id = randomUUID();
    const catalog = await store.register({ id, leaseMs, handlers: this.worker.handlers() });
    this.worker.onRegistered(catalog);
    // Frees what earlier processes left behind.
    const { suspects } = await store.heartbeat(id);
    this.#suspects ||= suspects;
    this.#id = id;
  }

  #succeeded(): void {
    if (this.#failing) this.worker.logger.log('The payment worker sends heartbeats again.');
    this.#failing = false;
    this.#backoff.reset();
    const { runtime, leaseMs } = this.worker;
    this.#next(
      this.#id === null ? Math.max(0, this.#registerAt - runtime.monotonic()) : leaseMs / 3,
    );
    if (this.#id === null || this.#stopped) return;
    this.worker.onRenewed();
    if (this.#suspects) this.worker.onSuspects();
    this.#suspects = false;
  }

  #failed(error: unknown): void {
    if (!this.#failing) {
      this.worker.logger.error(
        `The payment worker could not send a heartbeat: ${describeError(error)}. It tries again until it can; what ` +
          'runs goes on.',
      );
    }
    this.#failing = true;
    this.#next(Math.min(this.#backoff.nextMs(), this.worker.leaseMs / 3));
  }

  #next(ms: number): void {
    this.#beating = null;
    if (this.#stopped) return;
    this.#cancel = this.worker.runtime.schedule(ms, () => this.#beat());
  }
}
