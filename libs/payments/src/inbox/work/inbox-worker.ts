import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { ThrottledLog } from '../../errors/throttled-log.js';
import { EventDispatcher } from '../../events/event-dispatcher.js';
import { HandlerRegistry } from '../../events/handler-registry.js';
import { PaymentsError } from '../../errors/payments-error.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { StoredBodies } from '../store/body-codec.js';
import { ClaimLoop } from './claim-loop.js';
import type { ClaimingWorker } from './claim-loop.js';
import type { AttemptResult } from './handler-attempt.js';
import { RunningAttempts } from './running-attempts.js';
import type { SlotReservation } from './running-attempts.js';
import { DueRuns } from './due-runs.js';
import type { RunDueResult } from './due-runs.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { HandlerSlots } from './handler-slots.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import { OverdueRuns } from './overdue-runs.js';
import { OutcomeWatches } from '../receive/awaited-handlers.js';
import { StaggeredRecovery } from '../recover/staggered-recovery.js';
import { policyOf, WORKER_OPTIONS } from '../inbox-options.js';
import type { HandlerPolicy, ResolvedWorkerOptions } from '../inbox-options.js';
import { WorkerHeartbeat } from '../recover/worker-heartbeat.js';

/** How long handlers may take to end after their signals were aborted by a closing application. */
const ABORTED_MS = 500;
/** How long what still runs after that keeps its lease, so that no other process runs it meanwhile. */
const GRACE_MS = 10_000;

/** Runs deliveries: those that the receiver assigns, and those that it claims. One for every store. */
@Injectable()
export class InboxWorker {
  readonly #logger = new Logger('PaymentInbox');
  readonly #places = new HandlerSlots();
  readonly #policies = new Map<string, HandlerPolicy>();
  readonly #overdue: OverdueRuns;
  readonly #dueRuns: DueRuns;
  readonly #registration: WorkerHeartbeat;
  readonly #runs: RunningAttempts;
  readonly #recovery: StaggeredRecovery;
  readonly #claims: ClaimLoop;
  #state: 'idle' | 'working' | 'draining' = 'idle';
  #background = true;
  #drained: Promise<void> | null = null;
  #stopListening: () => void = () => {};
  /**
   * Runs a function in the async context of the start. The worker is woken from within requests, and neither a handler
   * nor a timer may inherit what `AsyncLocalStorage` holds of one: a handler runs any delivery.
   */
  #outsideRequests: <R>(work: () => R) => R = (work) => work();

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly registry: HandlerRegistry,
    dispatcher: EventDispatcher,
    private readonly settlements: OutcomeWatches,
    bodies: StoredBodies,
    catalog: HandlerCatalogCache,
  ) {
    const logger = this.#logger;
    const throttled = new ThrottledLog(logger, runtime);
    const overdue = new OverdueRuns(runtime, throttled);
    this.#overdue = overdue;
    this.#dueRuns = new DueRuns(runtime);
    this.#registration = new WorkerHeartbeat({
      store,
      runtime,
      logger,
      leaseMs: options.leaseMs,
      handlers: () => registry.all().map(({ name, patterns }) => ({ name, patterns })),
      holds: (id) => this.#runs.holds(id),
      onRegistered: (known) => catalog.set(known),
      onRenewed: () => this.wake(),
      onDeclaredDead: (id) => this.#declaredDead(id),
      onSuspects: () => this.#active && this.#recovery.suspectsWait(),
    });
    this.#runs = new RunningAttempts({
      services: { store, runtime, logger, throttled, dispatcher, bodies, overdue, catalog },
      places: this.#places,
      registration: this.#registration,
      working: () => this.#active,
      policy: (handler) => this.#policies.get(handler)!,
      onFree: () => this.#lookIfWanting(),
      onEnded: (delivery, run) => this.#ended(delivery, run),
    });
    const claiming: ClaimingWorker = {
      store,
      runtime,
      logger,
      places: this.#places,
      registration: this.#registration,
      active: () => this.#active,
      run: (delivery, id) => this.#runs.start(delivery, id),
    };
    this.#recovery = new StaggeredRecovery(claiming, () => this.#claims.look());
    this.#claims = new ClaimLoop(claiming, () => {
      if (this.#places.idle && !this.#recovery.busy) this.#dueRuns.end(false);
    });
  }

  /** Whether deliveries are run: between {@link start} and {@link drain}. */
  get working(): boolean {
    return this.#state === 'working';
  }

  /** How many handlers ignore their aborted signal and still run. */
  get ignoring(): number {
    return this.#overdue.count;
  }

  /**
   * Registers this process and begins to run deliveries; without `background`, only while {@link runDue} is under way.
   * Returns at once. Nothing is claimed before the process is registered.
   */
  start(background = true): void {
    this.#state = 'working';
    this.#background = background;
    this.#outsideRequests = AsyncLocalStorage.snapshot();
    for (const handler of this.registry.all()) {
      const policy = policyOf(handler, this.options);
      this.#policies.set(handler.name, policy);
      this.#places.add(handler.name, policy.concurrency);
    }
    if (background) this.#stopListening = this.store.onWake(() => this.wake());
    this.#registration.start();
  }

  /** See `PaymentInbox.runDue()`. */
  runDue(forMs: number): Promise<RunDueResult> {
    if (!this.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'Deliveries run between the start of the application and its close: call app.init() or app.listen() first.',
      );
    }
    const run = this.#dueRuns.add(forMs);
    this.#outsideRequests(() => {
      // The process may have been frozen since its last heartbeat.
      if (!this.#background) this.#registration.resume();
      this.wake();
    });
    return run;
  }

  /** Something may be due: to these handlers or, by default, to any. */
  wake(handlers?: readonly string[]): void {
    const woken = this.#places.wake(handlers);
    if (woken || handlers === undefined) this.#outsideRequests(() => this.#claims.look());
  }

  /**
   * Reserves a place of each of the handlers that has one free and no known backlog. Returns `null` if there is none, or if
   * this process does not run deliveries in the background.
   */
  reserve(handlers: readonly string[]): SlotReservation | null {
    if (!this.working || !this.#background) return null;
    const worker = this.#outsideRequests(() => this.#registration.current());
    const reserved = worker === null ? [] : this.#places.reserve(handlers);
    if (worker === null || reserved.length === 0) return null;
    const reservation = this.#runs.reserve(worker, reserved);
    return {
      ...reservation,
      start: (claimed) => this.#outsideRequests(() => reservation.start(claimed)),
    };
  }

  /**
   * Claims nothing more, waits up to `drainMs` for what runs, then aborts the signals. What still runs half a second later
   * keeps its lease for 10 s more.
   */
  drain(): Promise<void> {
    return (this.#drained ??= this.#drain());
  }

  async #drain(): Promise<void> {
    this.#state = 'draining';
    this.#stopListening();
    this.#dueRuns.end(true);
    if (!(await this.#endsWithin(this.options.drainMs))) {
      if (this.#runs.size > 0) {
        this.#logger.warn(
          `${this.#runs.size} payment handlers still ran after ${this.options.drainMs} ms of draining and ` +
            'were aborted. Raise "worker.drainMs", or pass context.signal to what they call.',
        );
      }
      this.#runs.abandon();
      await this.#endsWithin(ABORTED_MS);
    }
    await this.#registration.retire(GRACE_MS);
    this.settlements.abandon();
  }

  /** Whether deliveries may be claimed now. */
  get #active(): boolean {
    return this.working && (this.#background || this.#dueRuns.any);
  }

  async #endsWithin(ms: number): Promise<boolean> {
    let cancel = () => {};
    const timeUp = new Promise<false>((resolve) => {
      cancel = this.runtime.schedule(ms, () => resolve(false));
    });
    const ended = Promise.all([
      this.#claims.stop(),
      this.#recovery.stop(),
      this.#places.whenIdle(),
    ]);
    const inTime = await Promise.race([ended.then(() => true), timeUp]);
    cancel();
    return inTime;
  }

  #ended(delivery: ClaimedDelivery, { outcome, nextDue, retryInMs }: AttemptResult): void {
    this.settlements.report(delivery, outcome);
    this.#dueRuns.note(outcome);
    if (nextDue) this.#places.wake([delivery.handler]);
    if (retryInMs !== null) this.#claims.wakeIn(retryInMs);
    // The end of the last run may be the end of runDue().
    if (this.#dueRuns.any) this.#claims.look();
    else this.#lookIfWanting();
  }

  #declaredDead(id: string): void {
    const lost = this.#runs.lose(id);
    if (lost === 0) return;
    this.#logger.warn(
      `This process sent no heartbeat for ${this.options.leaseMs} ms, so ${lost} deliveries that it ran were freed for ` +
        'others, and their signals are aborted. Look for what blocks the event loop, or raise "worker.leaseMs".',
    );
  }

  #lookIfWanting(): void {
    if (this.#places.wanting) this.#claims.look();
  }
}
