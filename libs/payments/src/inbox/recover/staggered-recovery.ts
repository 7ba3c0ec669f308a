import { describeError } from '../../errors/payments-error.js';
import { withTimeLimit } from '../../runtime/deadline.js';
import type { Logger } from '@nestjs/common';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import type { ClaimedDelivery, InboxStore } from '../store/inbox-store.js';
import type { HandlerSlots } from '../work/handler-slots.js';
import type { WorkerHeartbeat } from './worker-heartbeat.js';

/** The shortest pause after a suspect that ran alone, in milliseconds. Other deliveries run in the pause. */
const PAUSE_MS = 50;
/**
 * How long a suspect first waits until no attempt runs, in milliseconds. If an attempt still runs after that, other
 * deliveries are claimed for as long, and the next wait is twice as long.
 */
const FIRST_WAIT_MS = 1000;
/** How many heartbeats with suspects are ignored at most, after no suspect could be claimed. */
const MAX_IGNORED = 8;

/** The parts of the worker that claims of deliveries use. */
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

/**
 * Runs suspects: deliveries during which their process died. A suspect may be the cause of the death, so suspects run
 * one at a time. A suspect with one crash runs in parallel to other deliveries. A suspect with more crashes runs alone:
 * the process claims nothing until all attempts have ended and the suspect has run. A crash then has only one possible
 * cause. An attempt that hangs ends that wait early, so that it does not stop the other handlers.
 */
export class StaggeredRecovery {
  #round: Promise<void> | null = null;
  #moreDue = false;
  /** How many heartbeats with suspects are still to be ignored. */
  #ignore = 0;
  #ignoreNext = 1;
  #waitMs = FIRST_WAIT_MS;
  #endPause: () => void = () => {};

  constructor(
    private readonly worker: ClaimingWorker,
    /** Called when slots have become free again. */
    private readonly onFree: () => void,
  ) {}

  /** Whether suspects are claimed or run at this moment. */
  get busy(): boolean {
    return this.#round !== null;
  }

  /** Runs suspects, because a heartbeat reported that some are due. */
  suspectsDue(): void {
    this.#moreDue = true;
    if (this.#round !== null) return;
    if (this.#ignore > 0) {
      this.#ignore -= 1;
      return;
    }
    this.#round = this.#recover();
  }

  /** Resolves when the suspect that runs has ended. Call it when the worker is not active any more. */
  async stop(): Promise<void> {
    this.#endPause();
    await this.#round;
  }

  async #recover(): Promise<void> {
    try {
      do {
        this.#moreDue = false;
        let found = false;
        while (await this.#runOne(false)) found = true;
        if (!found && !(await this.#runAlone())) break;
        // Calls suspectsDue() if more suspects are due.
        await this.worker.heartbeat.sendNow();
      } while (this.#moreDue);
      // Another process may have run the suspect that this one waited for.
      this.#waitMs = FIRST_WAIT_MS;
    } catch (error) {
      this.worker.logger.warn(
        `Deliveries whose process died could not be claimed: ${describeError(error)}. The worker tries again after ` +
          'its next heartbeat.',
      );
    }
    this.#round = null;
    this.onFree();
  }

  /** Runs one suspect while nothing else runs. Resolves with whether there was one, or there may be one. */
  async #runAlone(): Promise<boolean> {
    const { slots, runtime } = this.worker;
    if (!this.worker.active()) return false;
    let found = false;
    let isIdle = false;
    let startedAt = 0;
    slots.close();
    try {
      isIdle = await this.#idleInTime();
      startedAt = runtime.monotonic();
      if (isIdle) found = await this.#runOne(true);
    } finally {
      slots.open();
      this.onFree();
    }
    if (!isIdle) {
      // Not as long as the wait took: a process that was frozen meanwhile would delay the suspect by the same time again.
      if (this.worker.active()) await this.#pause(this.#waitMs);
      this.#waitMs *= 2;
      return true;
    }
    this.#waitMs = FIRST_WAIT_MS;
    // If none was found, the ordering keys of all suspects are busy. Do not stop all other work for each heartbeat.
    this.#ignore = found ? 0 : this.#ignoreNext;
    this.#ignoreNext = found ? 1 : Math.min(MAX_IGNORED, 2 * this.#ignoreNext);
    // The pause is as long as the suspect ran, so that other deliveries get half of the time.
    if (found && this.worker.active())
      await this.#pause(Math.max(PAUSE_MS, runtime.monotonic() - startedAt));
    return found;
  }

  /** Resolves with whether no attempt runs before the wait is over. */
  #idleInTime(): Promise<boolean> {
    const { slots, runtime } = this.worker;
    const late = (): Error => new Error('An attempt still runs.');
    return withTimeLimit(slots.whenIdle(), this.#waitMs, runtime, late).then(
      () => true,
      () => false,
    );
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.worker.runtime.schedule(ms, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }

  /** Claims the next suspect and runs it to its end. Resolves with whether there was one. */
  async #runOne(alone: boolean): Promise<boolean> {
    const { store, slots, heartbeat } = this.worker;
    const worker = this.worker.active() ? heartbeat.current() : null;
    const handlers = alone ? slots.names : slots.withFreeSlot;
    if (worker === null || handlers.length === 0) return false;
    // The suspect may belong to any of the handlers. Take a slot of each, so that a claim cannot take the last one.
    for (const handler of handlers) slots.take(handler);
    let suspect: ClaimedDelivery | null = null;
    try {
      suspect = await store.claimSuspect({ worker, handlers, alone });
    } catch (error) {
      heartbeat.replace(worker);
      throw error;
    } finally {
      for (const handler of handlers) if (handler !== suspect?.handler) slots.free(handler);
      if (slots.wanting) this.onFree();
    }
    if (suspect === null) return false;
    await this.worker.run(suspect, worker);
    return true;
  }
}
