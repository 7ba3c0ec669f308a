import { AsyncLocalStorage } from 'node:async_hooks';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { EventDispatcher } from '../events/event.dispatcher.js';
import { HandlerRegistry } from '../events/handler.registry.js';
import { describeThrown } from '../events/thrown.js';
import { PaymentsError } from '../payments.errors.js';
import { PAYMENTS_RUNTIME } from '../payments.runtime.js';
import type { PaymentsRuntime } from '../payments.runtime.js';
import { apart } from './crash.suspects.js';
import { DeliveryRun } from './delivery.run.js';
import { DueRuns } from './due-runs.js';
import type { DueRun } from './due-runs.js';
import type { ClaimedDelivery, InboxStore } from './inbox-store.js';
import { INBOX_STORE, WORKER_OPTIONS } from './inbox-tokens.js';
import { Settlements } from './settlements.js';
import { StoredBodies } from './stored-bodies.js';
import type { ResolvedWorkerOptions } from './worker-options.js';

/** How long the worker sleeps at the most before it looks again, whatever the store said was next. */
const MAX_SLEEP_MS = 30_000;
/** How long it waits after the store failed it. */
const STORE_DOWN_MS = 1000;
/** How long it waits to look again at what is due but held back. */
const HELD_BACK_MS = 200;
/** What handlers that heed their signal get to end in, once it was aborted. Less than two thirds of a lease. */
const ABORTED_MS = 500;

/**
 * Claims due deliveries, runs their handlers and settles them: one worker for every store. It is woken when
 * an event is stored, when a handler ends, and when the next delivery falls due.
 */
@Injectable()
export class InboxWorker {
  readonly #logger = new Logger('PaymentInbox');
  /** Those whose handlers run, and those that are being settled. */
  readonly #running = new Set<DeliveryRun>();
  /** How many handlers run. */
  #handling = 0;
  #state: 'idle' | 'working' | 'draining' = 'idle';
  #background = true;
  readonly #dueRuns: DueRuns;
  #pumping: Promise<void> | null = null;
  #again = false;
  /** Whether the store could not be read when it was last tried. */
  #storeDown = false;
  #cancelSleep: () => void = () => {};
  #stopListening: () => void = () => {};
  /**
   * Runs a function in the async context of the start. The worker is woken from within requests, and neither
   * a handler nor a timer may inherit what `AsyncLocalStorage` holds of one: a handler runs any delivery.
   */
  #outsideRequests: <R>(work: () => R) => R = (work) => work();

  constructor(
    @Inject(INBOX_STORE) private readonly store: InboxStore,
    @Inject(WORKER_OPTIONS) private readonly options: ResolvedWorkerOptions,
    @Inject(PAYMENTS_RUNTIME) private readonly runtime: PaymentsRuntime,
    @Inject(HandlerRegistry) private readonly registry: HandlerRegistry,
    @Inject(EventDispatcher) private readonly dispatcher: EventDispatcher,
    @Inject(Settlements) private readonly settlements: Settlements,
    @Inject(StoredBodies) private readonly bodies: StoredBodies,
  ) {
    this.#dueRuns = new DueRuns(runtime);
  }

  /** Whether deliveries are being run: between {@link start} and {@link drain}. */
  get working(): boolean {
    return this.#state === 'working';
  }

  /** Begins to run deliveries; without `background`, only while {@link runDue} is under way. */
  start(background = true): void {
    this.#state = 'working';
    this.#background = background;
    this.#outsideRequests = AsyncLocalStorage.snapshot();
    if (background) this.#stopListening = this.store.onWake(() => this.wake());
    this.wake();
  }

  /** See `PaymentInbox.runDue()`. */
  runDue(forMs: number): Promise<DueRun> {
    if (!this.working) {
      throw new PaymentsError(
        'inbox_unavailable',
        'Deliveries run between the start of the application and its close: call app.init() or app.listen() first.',
      );
    }
    const run = this.#dueRuns.add(forMs);
    this.wake();
    return run;
  }

  /** Looks for due deliveries at the end of this turn of the event loop: once, for all that asked in it. */
  wake(): void {
    this.#again = true;
    if (this.#active) this.#pumping ??= this.#outsideRequests(() => this.#pump());
  }

  /** Claims nothing more, waits up to `drainMs` for what runs, then aborts what is left. */
  async drain(): Promise<void> {
    this.#state = 'draining';
    this.#stopListening();
    this.#cancelSleep();
    this.#dueRuns.end(true);
    if (!(await this.#endsWithin(this.options.drainMs))) {
      if (this.#running.size > 0) {
        this.#logger.warn(
          `${this.#running.size} payment handlers still ran after ${this.options.drainMs} ms of draining and ` +
            'were aborted. Raise "worker.drainMs", or have them heed context.signal.',
        );
      }
      for (const run of this.#running) run.abandon();
      if (!(await this.#endsWithin(ABORTED_MS))) await this.#giveBack();
    }
    this.settlements.abandon();
  }

  /** Whether deliveries may be claimed now. */
  get #active(): boolean {
    return this.working && (this.#background || this.#dueRuns.any);
  }

  async #giveBack(): Promise<void> {
    const given = await Promise.allSettled([...this.#running].map((run) => run.giveBack()));
    const failed = given.find((result) => result.status === 'rejected');
    if (failed === undefined) return;
    this.#logger.error(
      `Deliveries could not be given back: ${describeThrown(failed.reason)}. They run again when their leases end.`,
    );
  }

  async #endsWithin(ms: number): Promise<boolean> {
    let cancel = () => {};
    const timeUp = new Promise<false>((resolve) => {
      cancel = this.runtime.schedule(ms, () => resolve(false));
    });
    const inTime = await Promise.race([this.#ended(), timeUp]);
    cancel();
    return inTime;
  }

  async #ended(): Promise<true> {
    await this.#pumping;
    await Promise.all([...this.#running].map((run) => run.ended));
    return true;
  }

  async #pump(): Promise<void> {
    let sleepMs: number = STORE_DOWN_MS;
    let workedOff = false;
    try {
      while (this.#again && this.#active) {
        await endOfTurn();
        this.#again = false;
        await this.#claim();
      }
      sleepMs = await this.#untilNextDue();
      workedOff = sleepMs > 0 && this.#running.size === 0;
      if (this.#storeDown) this.#logger.log('The payment inbox can be read again.');
      this.#storeDown = false;
    } catch (error) {
      // Once, however long it lasts: it is tried every second.
      if (!this.#storeDown) {
        this.#logger.error(
          `The payment inbox could not be read: ${describeThrown(error)}. It is tried again until it can.`,
        );
      }
      this.#storeDown = true;
    }
    this.#pumping = null;
    this.#cancelSleep();
    if (this.#again) {
      this.wake();
      return;
    }
    if (workedOff) this.#dueRuns.end(false);
    // What is due and was not claimed is held back by its ordering key, here or elsewhere.
    const ms = sleepMs > 0 ? sleepMs : HELD_BACK_MS;
    if (this.#active) this.#cancelSleep = this.runtime.schedule(ms, () => this.wake());
  }

  /** How many deliveries may be claimed: a handler that has ended makes room while its delivery is settled. */
  #free(): number {
    const { concurrency } = this.options;
    // Where the store settles more slowly than handlers end, the leases held stay bounded.
    return Math.min(concurrency - this.#handling, 2 * concurrency - this.#running.size);
  }

  async #claim(): Promise<void> {
    const free = this.#free();
    if (free <= 0 || !this.#active) return;
    const deliveries = await this.store.claim({
      handlers: this.registry.names(),
      limit: free,
      leaseMs: this.options.leaseMs,
    });
    // The application may have begun to close meanwhile, or the time may be up.
    const { now, later } = this.#active
      ? apart(deliveries, this.options)
      : { now: [], later: deliveries.map((delivery) => ({ delivery, inMs: 0 })) };
    for (const delivery of now) this.#start(delivery);
    await Promise.all(later.map(({ delivery, inMs }) => this.store.release(delivery, inMs)));
  }

  /**
   * Milliseconds to sleep, 0 if something is due. A worker that is full is woken by the end of a handler, so it need
   * not ask.
   */
  async #untilNextDue(): Promise<number> {
    if (!this.#active || this.#free() <= 0) return MAX_SLEEP_MS;
    const next = await this.store.nextDueInMs(this.registry.names());
    return next === null ? MAX_SLEEP_MS : Math.min(MAX_SLEEP_MS, Math.max(0, Math.ceil(next)));
  }

  #start(delivery: ClaimedDelivery): void {
    const { store, options, runtime, dispatcher, settlements, bodies } = this;
    this.#handling += 1;
    const onHandled = (): void => {
      this.#handling -= 1;
      this.wake();
    };
    const run = new DeliveryRun(
      delivery,
      { store, options, runtime, dispatcher, settlements, bodies },
      onHandled,
    );
    this.#running.add(run);
    void run.ended.then((outcome) => {
      this.#running.delete(run);
      this.#dueRuns.note(outcome);
      // Its ordering key is free now.
      this.wake();
    });
  }
}

/** Lets everything else of this turn of the event loop happen first. */
function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
