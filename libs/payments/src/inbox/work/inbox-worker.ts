import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable } from '@nestjs/common';
import { ModuleLogger, ThrottledLog } from '../../errors/module-log.js';
import { describeError, PaymentsError } from '../../errors/payments-error.js';
import { EventDispatcher } from '../../events/event-dispatcher.js';
import { HandlerRegistry, isReserved } from '../../events/handler-registry.js';
import type { PaymentEvent } from '../../events/payment-event.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import { PAYMENTS_RUNTIME } from '../../runtime/payments-runtime.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { NO_OBSERVERS, Observers } from '../../telemetry/observers.js';
import { StoredBodies } from '../store/body-codec.js';
import { HandlerCatalogCache } from '../store/handler-catalog-cache.js';
import { INBOX_STORE } from '../store/inbox-store.js';
import type {
  ClaimedDelivery,
  HandlerDeclaration,
  InboxStore,
  Lease,
} from '../store/inbox-store.js';
import { Attempt } from './attempt.js';
import type { AttemptOutcome, AttemptResult, AttemptServices } from './attempt.js';
import { ClaimLoop } from './claim-loop.js';
import { HandlerSlots } from './handler-slots.js';
import { WorkerHeartbeat } from './worker-heartbeat.js';
import { policyOf, WORKER_OPTIONS } from './worker-options.js';
import type { HandlerPolicy, ResolvedWorkerOptions } from './worker-options.js';

/** Passes the outcome of each attempt to every {@link OutcomeWatch} of its event. */
export class OutcomeWatches {
  readonly #watches = new Map<string, Set<OutcomeWatch>>();
  #abandoned = false;

  /** Collects the outcomes of an event's attempts until {@link OutcomeWatch.end} is called. */
  watch(company: string, id: string): OutcomeWatch {
    const key = `${company}\n${id}`;
    const watches = this.#watches.get(key) ?? new Set();
    this.#watches.set(key, watches);
    const watch = new OutcomeWatch(() => {
      watches.delete(watch);
      if (watches.size === 0 && this.#watches.get(key) === watches) this.#watches.delete(key);
    });
    watches.add(watch);
    if (this.#abandoned) watch.abandon();
    return watch;
  }

  /**
   * Ends the wait of all watches, including watches that start later, because a drained worker runs no more attempts.
   */
  abandon(): void {
    this.#abandoned = true;
    for (const watches of this.#watches.values()) for (const watch of watches) watch.abandon();
  }

  report({ company, id, handler }: Lease, outcome: AttemptOutcome): void {
    if (this.#watches.size === 0) return;
    for (const watch of this.#watches.get(`${company}\n${id}`) ?? []) watch.add(handler, outcome);
  }
}

/** The outcomes of one event's attempts since the watch started. */
export class OutcomeWatch {
  /** The last outcome of each handler. A handler that failed and then succeeded in a later attempt is done. */
  readonly #outcomes = new Map<string, AttemptOutcome>();
  #onChange: () => void = () => {};
  #abandoned = false;

  constructor(
    /** Ends the watch. Idempotent. */
    readonly end: () => void,
  ) {}

  add(handler: string, outcome: AttemptOutcome): void {
    if (this.#outcomes.get(handler) !== 'done') this.#outcomes.set(handler, outcome);
    this.#onChange();
  }

  /** Makes {@link failures} resolve at once. A handler without an outcome counts as failed. */
  abandon(): void {
    this.#abandoned = true;
    this.#onChange();
  }

  /** Whether an attempt of that handler has ended since the watch started. */
  hasEnded(handler: string): boolean {
    return this.#outcomes.has(handler);
  }

  /** Resolves with the handlers that failed, once an attempt of each of `handlers` has ended. */
  failures(handlers: readonly string[]): Promise<string[]> {
    return new Promise((resolve) => {
      this.#onChange = () => {
        if (!this.#abandoned && !handlers.every((handler) => this.hasEnded(handler))) return;
        resolve(handlers.filter((handler) => this.#outcomes.get(handler) !== 'done'));
      };
      this.#onChange();
    });
  }
}

/** The result of `PaymentInbox.runDue()`. */
export interface RunDueResult {
  /** Number of attempts whose handler succeeded. */
  readonly done: number;
  /** Number of attempts that failed. The deliveries of these attempts run again later, or are dead. */
  readonly failed: number;
  /** Whether `forMs` passed, or the application closed, while a delivery was due or running. */
  readonly more: boolean;
}

/** The load of one handler in one process. */
export interface HandlerLoad {
  readonly name: string;
  /** Number of running attempts. */
  readonly running: number;
  /** Maximum number of attempts that may run at the same time. */
  readonly slots: number;
}

/** A call of `PaymentInbox.runDue()` that has not resolved. */
interface RunDueCall {
  done: number;
  failed: number;
  readonly end: (more: boolean) => void;
}

/** How long handlers may take to end after a closing application aborted their signals, in milliseconds. */
const ABORTED_MS = 500;
/** Milliseconds for which a delivery stays leased if its handler still runs after {@link ABORTED_MS}. */
const GRACE_MS = 10_000;

/**
 * Work other than deliveries that becomes due in the inbox, such as the polls of expected payments. This work runs
 * while the worker is active. `runDue()` runs this work too, and `drain()` stops it.
 */
export interface InboxCompanion {
  /** The entry of this process in the handler catalog for this work. */
  readonly declaration: HandlerDeclaration;
  /** Whether none of this work runs or is about to run. */
  readonly idle: boolean;
  /** Claims this work soon, if {@link InboxWorker.active} is true, because some of it may be due. */
  wake(): void;
  /** Stops claiming. Resolves when all running work has ended. */
  stop(): Promise<void>;
  /** Aborts the running work, because the application closes. */
  abandon(): void;
}

/** Slots that are reserved for the deliveries of an event that is being received. */
interface SlotReservation {
  readonly workerId: string;
  readonly handlers: readonly string[];
  /**
   * Runs the deliveries that the store assigned, and frees the other slots. Call this function exactly once.
   *
   * @param claimed the deliveries that the store assigned; `null` if the receive failed but may have taken effect
   * @param parsed the parsed event of the deliveries: the first handler gets this object and may change it, because
   *   nothing else uses it
   */
  start(claimed: readonly ClaimedDelivery[] | null, parsed?: PaymentEvent | null): void;
}

/** Runs the deliveries that the store assigns to this process on receipt, and those that this process claims. */
@Injectable()
export class InboxWorker {
  readonly outcomes = new OutcomeWatches();
  readonly #logger = new ModuleLogger('PaymentInbox');
  readonly #slots = new HandlerSlots();
  readonly #policies = new Map<string, HandlerPolicy>();
  readonly #services: AttemptServices;
  readonly #runDueCalls = new Set<RunDueCall>();
  readonly #heartbeat: WorkerHeartbeat;
  readonly #claims: ClaimLoop;
  /** The running attempts, each with the worker id that leases its delivery. */
  readonly #running = new Map<Attempt, string>();
  /** The handlers that may have due suspects. A suspect is a delivery whose process died during an attempt. */
  readonly #withSuspects = new Set<string>();
  #suspectRuns = false;
  #companion: InboxCompanion | null = null;
  #state: 'idle' | 'working' | 'draining' = 'idle';
  #background = true;
  #drained: Promise<void> | null = null;
  #stopListening: () => void = () => {};
  readonly #heartbeatListeners: (() => void)[] = [];
  /**
   * Runs a function in the async context in which the worker was started. A request may start deliveries or a
   * heartbeat, but no handler and no timer may inherit the `AsyncLocalStorage` of that request.
   */
  #outsideRequests: <R>(work: () => R) => R = (work) => work();

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    private readonly registry: HandlerRegistry,
    dispatcher: EventDispatcher,
    bodies: StoredBodies,
    catalog: HandlerCatalogCache,
    observers: Observers = NO_OBSERVERS,
  ) {
    const logger = this.#logger;
    const throttled = new ThrottledLog(logger, runtime);
    const services = { store, runtime, logger, throttled, dispatcher, bodies, catalog, observers };
    this.#services = { ...services, ignoringSignal: 0 };
    this.#heartbeat = new WorkerHeartbeat({
      store,
      catalog,
      runtime,
      logger,
      leaseMs: options.leaseMs,
      handlers: () => this.#declarations,
      onSuccess: (suspects) => {
        if (suspects) for (const handler of this.#slots.names) this.#withSuspects.add(handler);
        // Does not wake the companion. Otherwise, in an idle process, each heartbeat would also cost the statements of
        // a claim of polls.
        this.#wakeDeliveries();
        for (const listener of this.#heartbeatListeners) listener();
      },
      onDeclaredDead: (id) => this.#declaredDead(id),
    });
    this.#claims = new ClaimLoop({
      runtime,
      logger,
      active: () => this.active,
      claim: () => this.#claim(),
      // A worker cannot claim before it is registered. The registration of a worker wakes the loop.
      nextDueInMs: async () =>
        this.#currentId() === null ? undefined : store.nextDueInMs(this.#slots.caughtUp),
      onDue: () => void this.#slots.wake(),
      onNothingDue: () => {
        if (this.idle) this.#endRunDue(false);
      },
    });
  }

  get working(): boolean {
    return this.#state === 'working';
  }

  /** Whether no delivery and no poll runs in this process, and none is about to run. */
  get idle(): boolean {
    return this.#slots.idle && (this.#companion?.idle ?? true);
  }

  /** Whether deliveries and polls may be claimed now. */
  get active(): boolean {
    return this.working && (this.#background || this.#runDueCalls.size > 0);
  }

  /** The load of each handler of the application in this process. */
  get load(): HandlerLoad[] {
    const running = [...this.#running.keys()];
    return [...this.#policies]
      .filter(([name]) => !isReserved(name))
      .map(([name, { concurrency: slots }]) => ({
        name,
        running: running.filter(({ delivery }) => delivery.handler === name).length,
        slots,
      }));
  }

  /** Adds work other than deliveries. Call this method before {@link start}. */
  join(companion: InboxCompanion): void {
    this.#companion = companion;
  }

  /** Calls `listener` after each successful heartbeat, every quarter of `leaseMs`. */
  onHeartbeat(listener: () => void): void {
    this.#heartbeatListeners.push(listener);
  }

  /** See {@link AttemptServices.ignoringSignal}. */
  get ignoringSignal(): number {
    return this.#services.ignoringSignal;
  }

  /**
   * Starts the worker. Without `background`, deliveries run only during {@link runDue}. The worker claims nothing
   * before it is registered.
   */
  start(background = true): void {
    this.#state = 'working';
    this.#background = background;
    this.#outsideRequests = AsyncLocalStorage.snapshot();
    for (const handler of this.registry.all()) {
      const policy = policyOf(handler, this.options);
      this.#policies.set(handler.name, policy);
      this.#slots.add(handler.name, policy.concurrency);
    }
    if (background) this.#stopListening = this.store.onWake(() => this.wake());
    this.#heartbeat.start();
    this.#companion?.wake();
  }

  /** See `PaymentInbox.runDue()`. */
  runDue(forMs: number): Promise<RunDueResult> {
    if (!this.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'The application has not started or is closing, so no delivery can run: call app.init() or app.listen() first.',
      );
    }
    const result = new Promise<RunDueResult>((resolve) => {
      const end = (more: boolean): void => {
        cancel();
        this.#runDueCalls.delete(call);
        resolve({ done: call.done, failed: call.failed, more });
      };
      const call: RunDueCall = { done: 0, failed: 0, end };
      const cancel = this.runtime.schedule(forMs, () => end(true));
      this.#runDueCalls.add(call);
    });
    // The process may have been frozen since its last heartbeat.
    if (!this.#background) this.#outsideRequests(() => this.#heartbeat.resume());
    this.wake();
    return result;
  }

  /** Claims soon, because deliveries to these handlers or, by default, to any handler may be due. */
  wake(handlers?: readonly string[]): void {
    if (handlers === undefined) this.#companion?.wake();
    this.#wakeDeliveries(handlers);
  }

  #wakeDeliveries(handlers?: readonly string[]): void {
    const known = this.#slots.wake(handlers);
    if (known || handlers === undefined) this.#claims.claimSoon();
  }

  /** Called when the companion has no more work to run. Ends the calls of `runDue()` unless deliveries are due. */
  companionIdle(): void {
    if (this.#runDueCalls.size > 0) this.#claims.claimSoon();
  }

  /**
   * Reserves a slot for each of these handlers that has a free slot. Returns `null` if it reserved no slot, or if this
   * process does not run deliveries in the background.
   */
  reserve(handlers: readonly string[]): SlotReservation | null {
    if (!this.working || !this.#background) return null;
    const workerId = this.#currentId();
    const reserved = workerId === null ? [] : this.#slots.reserve(handlers);
    if (workerId === null || reserved.length === 0) return null;
    this.#heartbeat.use(workerId);
    const start: SlotReservation['start'] = (claimed, parsed = null) =>
      this.#outsideRequests(() => this.#startReserved(workerId, reserved, claimed, parsed));
    return { workerId, handlers: reserved, start };
  }

  /**
   * Stops claiming, waits up to `drainMs` for attempts to end, then aborts their signals. If a handler still runs half
   * a second later, its delivery stays leased for 10 s more.
   */
  drain(): Promise<void> {
    return (this.#drained ??= this.#drain());
  }

  async #drain(): Promise<void> {
    this.#state = 'draining';
    this.#stopListening();
    this.#endRunDue(true);
    if (!(await this.#endsWithin(this.options.drainMs))) {
      if (this.#running.size > 0) {
        this.#logger.warn(
          `${this.#running.size} payment handlers still ran after ${this.options.drainMs} ms, so the closing ` +
            'application aborted their signals. Raise "worker.drainMs", or pass context.signal to what the handlers call.',
        );
      }
      for (const attempt of this.#running.keys()) attempt.abandon();
      this.#companion?.abandon();
      await this.#endsWithin(ABORTED_MS);
    }
    await this.#heartbeat.retire(GRACE_MS);
    this.outcomes.abandon();
  }

  get #declarations(): HandlerDeclaration[] {
    const own = this.registry.all().map(({ name, patterns }) => ({ name, patterns }));
    return this.#companion === null ? own : [...own, this.#companion.declaration];
  }

  async #claim(): Promise<boolean> {
    const slots = this.#slots;
    const workerId = this.active ? this.#currentId() : null;
    if (workerId === null) return false;
    const wanted = slots.requestForClaim();
    if (wanted.length === 0) return false;
    let suspect: ClaimedDelivery | null;
    let claimed: ClaimedDelivery[];
    // If an id retired during a claim, the deliveries that the claim returns would be lost.
    this.#heartbeat.use(workerId);
    try {
      suspect = await this.#claimSuspect(
        workerId,
        wanted.map(({ handler }) => handler),
      );
      const others = wanted
        .map(({ handler, limit }) => ({
          handler,
          limit: handler === suspect?.handler ? limit - 1 : limit,
        }))
        .filter(({ limit }) => limit > 0);
      // The drain may have begun while the store looked for a suspect.
      const claims = others.length > 0 && this.active;
      claimed = claims ? await this.store.claim({ workerId, wanted: others }) : [];
    } catch (error) {
      slots.claimFailed(wanted);
      this.#heartbeat.endUse(workerId);
      // The replacement of the id also frees a suspect that was already claimed.
      this.#heartbeat.replace(workerId);
      throw error;
    }
    slots.claimed(wanted, suspect === null ? claimed : [suspect, ...claimed]);
    if (suspect !== null) void this.#runSuspect(suspect, workerId);
    for (const delivery of claimed) void this.#start(delivery, workerId);
    this.#heartbeat.endUse(workerId);
    return slots.wanting;
  }

  /**
   * Claims a suspect before other deliveries, unless this process already runs a suspect. A suspect may have caused the
   * death of its process. A process runs only one suspect at a time, so that if the process dies, only the attempt of
   * this suspect is counted. The suspects of one handler may crash one process after another, and must not delay the
   * suspects of the other handlers. Therefore, the order of the handlers in each claim is random.
   */
  async #claimSuspect(workerId: string, free: readonly string[]): Promise<ClaimedDelivery | null> {
    const handlers = free.filter((handler) => this.#withSuspects.has(handler));
    if (this.#suspectRuns || handlers.length === 0) return null;
    for (const handler of handlers) this.#withSuspects.delete(handler);
    const first = Math.floor(this.runtime.random() * handlers.length);
    const rotated = [...handlers.slice(first), ...handlers.slice(0, first)];
    const suspect = await this.store.claimSuspect({ workerId, handlers: rotated });
    if (suspect !== null) for (const handler of handlers) this.#withSuspects.add(handler);
    return suspect;
  }

  async #runSuspect(suspect: ClaimedDelivery, workerId: string): Promise<void> {
    this.#suspectRuns = true;
    await this.#start(suspect, workerId);
    this.#suspectRuns = false;
    this.#slots.wake(this.#withSuspects);
    this.#claimIfWanting();
  }

  #startReserved(
    workerId: string,
    handlers: readonly string[],
    claimed: readonly ClaimedDelivery[] | null,
    parsed: PaymentEvent | null,
  ): void {
    if (claimed === null) this.#heartbeat.replace(workerId);
    for (const handler of handlers) {
      const delivery = claimed?.find((one) => one.handler === handler);
      if (delivery === undefined) this.#slots.free(handler);
      // Only the first attempt gets the parsed event, because a handler may change it.
      else void this.#start(delivery, workerId, delivery === claimed![0] ? parsed : null);
    }
    this.#heartbeat.endUse(workerId);
    this.#claimIfWanting();
  }

  /** Before the call, the delivery must be leased to the worker `id`, and its slot must be taken. */
  async #start(
    delivery: ClaimedDelivery,
    id: string,
    parsed: PaymentEvent | null = null,
  ): Promise<void> {
    const { handler } = delivery;
    if (!this.active || !this.#heartbeat.mayStart(id)) return this.#release(delivery, id);
    this.#heartbeat.use(id);
    const policy = this.#policies.get(handler)!;
    const attempt = new Attempt(delivery, policy, this.#services, parsed);
    this.#running.set(attempt, id);
    const result = await attempt.run(() => {
      this.#slots.handled(handler);
      this.#claimIfWanting();
    });
    this.#running.delete(attempt);
    this.#slots.settled(handler);
    this.#heartbeat.endUse(id);
    this.#ended(delivery, result);
  }

  /** Releases a delivery that was claimed too late. The attempt is not counted. */
  async #release(delivery: ClaimedDelivery, id: string): Promise<void> {
    try {
      await this.store.release(delivery);
    } catch (error) {
      // Otherwise, the heartbeats of that id would renew the lease, and no process would run the delivery.
      this.#heartbeat.replace(id);
      this.#services.throttled.warn(
        'release',
        () =>
          `A delivery could not be released: ${describeError(error)}. The store frees the delivery once this process ` +
          'has replaced its worker id; no action is needed.',
        delivery,
      );
    }
    this.#slots.free(delivery.handler);
    this.#slots.wake([delivery.handler]);
    this.#claimIfWanting();
  }

  /**
   * Returns the worker id to claim with. If this process has no valid id now, returns `null` and sends a heartbeat
   * outside of the async context of the request.
   */
  #currentId(): string | null {
    const { current } = this.#heartbeat;
    if (current === null) this.#outsideRequests(() => this.#heartbeat.renew());
    return current;
  }

  #endsWithin(ms: number): Promise<boolean> {
    const ended = Promise.all([
      this.#claims.stop(),
      this.#slots.whenIdle(),
      this.#companion?.stop(),
    ]).then(() => true);
    return withTimeLimit(ended, ms, this.runtime).catch(() => false);
  }

  #ended(delivery: ClaimedDelivery, { outcome, nextDue, retryInMs }: AttemptResult): void {
    this.outcomes.report(delivery, outcome);
    for (const call of this.#runDueCalls) call[outcome] += 1;
    if (nextDue) this.#slots.wake([delivery.handler]);
    if (retryInMs !== null) this.#claims.wakeIn(retryInMs);
    // After the last attempt, a claim that finds nothing due ends the calls of runDue().
    if (this.#runDueCalls.size > 0) this.#claims.claimSoon();
    else this.#claimIfWanting();
  }

  #endRunDue(more: boolean): void {
    for (const call of this.#runDueCalls) call.end(more);
  }

  #declaredDead(id: string): void {
    const lost = [...this.#running].filter(([, workerId]) => workerId === id);
    if (lost.length === 0) return;
    for (const [attempt] of lost) attempt.lose();
    this.#logger.warn(
      `This process sent no heartbeat for ${this.options.leaseMs} ms, so it lost the leases of ` +
        `${lost.length} deliveries that it was running. Other processes may run these deliveries, and the signals of ` +
        'their handlers in this process were aborted. Find out what blocks the event loop, or raise "worker.leaseMs".',
    );
  }

  #claimIfWanting(): void {
    if (this.#slots.wanting) this.#claims.claimSoon();
  }
}
