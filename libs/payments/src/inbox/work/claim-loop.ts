import type { Logger } from '@nestjs/common';
import { describeError } from '../../errors/payments-error.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { WorkerHeartbeat } from '../recover/worker-heartbeat.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';
import type { HandlerSlots } from './handler-slots.js';

/** The longest time between two claims of an idle worker, in milliseconds. It bounds the delay of a lost wake-up. */
const MAX_SLEEP_MS = 30_000;
/** The time until the next claim, in milliseconds, if a delivery is due that the last claim did not return. */
const CLAIM_AGAIN_MS = 100;

/** The parts of the worker that the claim loop uses. */
export interface ClaimingWorker {
  readonly store: InboxStore;
  readonly runtime: PaymentsRuntime;
  readonly logger: Logger;
  readonly slots: HandlerSlots;
  readonly heartbeat: WorkerHeartbeat;
  /** Whether the worker may claim now. */
  active(): boolean;
  /** Runs a delivery that the worker id claimed and whose slot is taken. Resolves when the attempt has ended. */
  run(delivery: ClaimedDelivery, id: string): Promise<void>;
}

/** Claims due deliveries, one claim at a time: when it is woken, and when the next delivery becomes due. */
export class ClaimLoop {
  readonly #backoff: Backoff;
  #round: Promise<void> = Promise.resolve();
  #claiming = false;
  #again = false;
  /** Whether the last use of the store failed. */
  #failing = false;
  /** Whether the loop waits before it retries a failed claim. */
  #backingOff = false;
  #cancelBackoff: () => void = () => {};
  #wakesAt = Infinity;
  #cancelSleep: () => void = () => {};

  constructor(
    private readonly worker: ClaimingWorker,
    /** Called when a claim found nothing due. */
    private readonly onNothingDue: () => void,
  ) {
    this.#backoff = new Backoff(worker.runtime, STORE_BACKOFF);
  }

  /** Claims at the end of this turn of the event loop. Several calls in one turn make one claim. */
  claimSoon(): void {
    this.#again = true;
    if (this.#claiming || this.#backingOff || !this.worker.active()) return;
    this.#claiming = true;
    this.#round = this.#run();
  }

  /** Claims in `ms` milliseconds, because a delivery becomes due then. */
  wakeIn(ms: number): void {
    const { runtime, slots } = this.worker;
    const at = runtime.monotonic() + ms;
    if (at >= this.#wakesAt || !this.worker.active()) return;
    this.#cancelSleep();
    this.#wakesAt = at;
    this.#cancelSleep = runtime.schedule(ms, () => {
      this.#wakesAt = Infinity;
      slots.wake();
      this.claimSoon();
    });
  }

  /** Resolves when the claim that is under way has ended. Call it when the worker is not active any more. */
  async stop(): Promise<void> {
    this.#cancelSleep();
    this.#cancelBackoff();
    await this.#round;
  }

  async #run(): Promise<void> {
    const { worker } = this;
    try {
      while (this.#again && worker.active()) {
        await endOfTurn();
        this.#again = false;
        await this.#claim();
      }
      await this.#sleep();
    } catch (error) {
      // Log one line per outage.
      if (!this.#failing) {
        worker.logger.error(
          `The payment inbox could not be read: ${describeError(error)}. The worker retries until it succeeds.`,
        );
      }
      this.#failing = true;
      this.#backOff();
    }
    this.#claiming = false;
    if (this.#again) this.claimSoon();
  }

  /** Until the backoff is over, nothing is claimed, even if the loop is woken. */
  #backOff(): void {
    if (!this.worker.active()) return;
    this.#backingOff = true;
    this.#cancelBackoff = this.worker.runtime.schedule(this.#backoff.nextMs(), () => {
      this.#backingOff = false;
      this.claimSoon();
    });
  }

  async #claim(): Promise<void> {
    const { store, slots, heartbeat } = this.worker;
    const worker = this.worker.active() ? heartbeat.current() : null;
    if (worker === null) return;
    const wanted = slots.requestForClaim();
    if (wanted.length === 0) return;
    let claimed: ClaimedDelivery[];
    try {
      claimed = await store.claim({ worker, wanted });
    } catch (error) {
      slots.claimFailed(wanted);
      heartbeat.replace(worker);
      throw error;
    }
    slots.claimed(wanted, claimed);
    for (const delivery of claimed) void this.worker.run(delivery, worker);
    if (slots.wanting) this.#again = true;
  }

  /** Sleeps until the next delivery becomes due for a handler with a free slot. The end of an attempt starts the next claim for its handler. */
  async #sleep(): Promise<void> {
    const { worker } = this;
    // A worker cannot claim before it is registered. Its registration wakes this loop.
    if (!worker.active() || worker.heartbeat.current() === null) return;
    const next = await worker.store.nextDueInMs(worker.slots.caughtUp);
    if (this.#failing) worker.logger.log('The payment inbox can be read again.');
    this.#failing = false;
    this.#backoff.reset();
    if (this.#again) return;
    if (next !== null && next <= 0) return this.wakeIn(CLAIM_AGAIN_MS);
    this.wakeIn(Math.min(MAX_SLEEP_MS, Math.ceil(next ?? MAX_SLEEP_MS)));
    this.onNothingDue();
  }
}

/** Resolves after all other work of this turn of the event loop. */
function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
