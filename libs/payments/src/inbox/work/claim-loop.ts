import type { Logger } from '@nestjs/common';
import { describeError } from '../../errors/payments-error.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import type { HandlerSlots } from './handler-slots.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';
import type { WorkerHeartbeat } from '../recover/worker-heartbeat.js';

/** How long it sleeps at most before it looks again, whatever the store said. */
const MAX_SLEEP_MS = 30_000;
/** How long it waits if something is due that its last claim did not return. */
const LOOK_AGAIN_MS = 100;

/** What claims need of the worker. */
export interface ClaimingWorker {
  readonly store: InboxStore;
  readonly runtime: PaymentsRuntime;
  readonly logger: Logger;
  readonly places: HandlerSlots;
  readonly registration: WorkerHeartbeat;
  /** Whether it may claim now. */
  active(): boolean;
  /** Runs what was claimed for that worker id. Its place is taken. Resolves when it has ended. */
  run(delivery: ClaimedDelivery, worker: string): Promise<void>;
}

/** Claims due deliveries, one claim at a time: if something may have become due, and when the next one becomes due. */
export class ClaimLoop {
  readonly #backoff: Backoff;
  #round: Promise<void> = Promise.resolve();
  #looking = false;
  #again = false;
  /** Whether the store could not be read when it was last tried. */
  #failing = false;
  /** Whether it waits before it tries again. */
  #waiting = false;
  #cancelWait: () => void = () => {};
  #wakesAt = Infinity;
  #cancelSleep: () => void = () => {};

  constructor(
    private readonly worker: ClaimingWorker,
    /** Nothing was due when it looked. */
    private readonly onNothingDue: () => void,
  ) {
    this.#backoff = new Backoff(worker.runtime, STORE_BACKOFF);
  }

  /** Claims what handlers have places for, at the end of this turn of the event loop: once for all calls in it. */
  look(): void {
    this.#again = true;
    if (this.#looking || this.#waiting || !this.worker.active()) return;
    this.#looking = true;
    this.#round = this.#look();
  }

  /** Something becomes due in `ms` milliseconds. */
  wakeIn(ms: number): void {
    const { runtime, places } = this.worker;
    const at = runtime.monotonic() + ms;
    if (at >= this.#wakesAt || !this.worker.active()) return;
    this.#cancelSleep();
    this.#wakesAt = at;
    this.#cancelSleep = runtime.schedule(ms, () => {
      this.#wakesAt = Infinity;
      places.wake();
      this.look();
    });
  }

  /** Resolves when a claim that is under way has ended. */
  async stop(): Promise<void> {
    this.#cancelSleep();
    this.#cancelWait();
    await this.#round;
  }

  async #look(): Promise<void> {
    const { worker } = this;
    try {
      while (this.#again && worker.active()) {
        await endOfTurn();
        this.#again = false;
        await this.#claim();
      }
      await this.#sleep();
    } catch (error) {
      // Logged once, however long it lasts.
      if (!this.#failing) {
        worker.logger.error(
          `The payment inbox could not be read: ${describeError(error)}. The worker tries again until it can.`,
        );
      }
      this.#failing = true;
      this.#wait();
    }
    this.#looking = false;
    if (this.#again) this.look();
  }

  /** Until then, nothing is claimed, whatever wakes it. */
  #wait(): void {
    if (!this.worker.active()) return;
    this.#waiting = true;
    this.#cancelWait = this.worker.runtime.schedule(this.#backoff.nextMs(), () => {
      this.#waiting = false;
      this.look();
    });
  }

  async #claim(): Promise<void> {
    const { store, places, registration } = this.worker;
    const worker = this.worker.active() ? registration.current() : null;
    if (worker === null) return;
    const wanted = places.ask();
    if (wanted.length === 0) return;
    let claimed: ClaimedDelivery[];
    try {
      claimed = await store.claim({ worker, wanted });
    } catch (error) {
      places.failed(wanted);
      registration.replace(worker);
      throw error;
    }
    places.answered(wanted, claimed);
    for (const delivery of claimed) void this.worker.run(delivery, worker);
    if (places.wanting) this.#again = true;
  }

  /** Sleeps until the next delivery becomes due. For handlers without a free place, the end of a run is awaited. */
  async #sleep(): Promise<void> {
    const { worker } = this;
    // A registration that succeeds wakes the worker.
    if (!worker.active() || worker.registration.current() === null) return;
    const next = await worker.store.nextDueInMs(worker.places.caughtUp);
    if (this.#failing) worker.logger.log('The payment inbox can be read again.');
    this.#failing = false;
    this.#backoff.reset();
    if (this.#again) return;
    if (next !== null && next <= 0) return this.wakeIn(LOOK_AGAIN_MS);
    this.wakeIn(Math.min(MAX_SLEEP_MS, Math.ceil(next ?? MAX_SLEEP_MS)));
    this.onNothingDue();
  }
}

/** Lets everything else of this turn of the event loop happen first. */
function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
