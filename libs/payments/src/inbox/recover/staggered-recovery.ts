import { describeError } from '../../errors/payments-error.js';
import type { ClaimingWorker } from '../work/claim-loop.js';
import type { ClaimedDelivery } from '../store/inbox-store.js';

/** The pause after a suspect that ran alone, at least. Other deliveries run meanwhile. */
const PAUSE_MS = 50;
/** How many heartbeats that report suspects are ignored at most, after none of them could be claimed. */
const MAX_IGNORED = 8;

/**
 * Runs suspects: deliveries during which their process died. One of them may be what it died of, so they run one at a
 * time. One with a single crash runs next to other deliveries. One with more runs alone: the process claims nothing
 * until what runs has ended, and nothing while the suspect runs, so that a crash has only one possible cause.
 */
export class StaggeredRecovery {
  #round: Promise<void> | null = null;
  #waiting = false;
  #ignore = 0;
  #ignoreNext = 1;
  #endPause: () => void = () => {};

  constructor(
    private readonly worker: ClaimingWorker,
    /** Places are free again. */
    private readonly onOpen: () => void,
  ) {}

  /** Whether suspects are being claimed or run, or may be left. */
  get busy(): boolean {
    return this.#round !== null;
  }

  /** A heartbeat reported that suspects wait. */
  suspectsWait(): void {
    this.#waiting = true;
    if (this.#round !== null) return;
    if (this.#ignore > 0) {
      this.#ignore -= 1;
      return;
    }
    this.#round = this.#recover();
  }

  /** Resolves when a suspect that runs has ended. Call it when the worker is not active any more. */
  async stop(): Promise<void> {
    this.#endPause();
    await this.#round;
  }

  async #recover(): Promise<void> {
    try {
      do {
        this.#waiting = false;
        let found = false;
        while (await this.#runOne(false)) found = true;
        if (!found && !(await this.#runAlone())) break;
        // Reports whether more of them wait.
        await this.worker.registration.check();
      } while (this.#waiting);
    } catch (error) {
      this.worker.logger.warn(
        `Deliveries that were interrupted could not be claimed: ${describeError(error)}. The worker tries again after ` +
          'its next heartbeat.',
      );
    }
    this.#round = null;
    this.onOpen();
  }

  /** Resolves with whether there was a suspect to run. */
  async #runAlone(): Promise<boolean> {
    const { places, runtime } = this.worker;
    if (!this.worker.active()) return false;
    let found = false;
    let startedAt = 0;
    places.close();
    try {
      await places.whenIdle();
      startedAt = runtime.monotonic();
      found = await this.#runOne(true);
    } finally {
      places.open();
      this.onOpen();
    }
    // The ordering keys of those that wait are busy: do not stop everything else for each heartbeat.
    this.#ignore = found ? 0 : this.#ignoreNext;
    this.#ignoreNext = found ? 1 : Math.min(MAX_IGNORED, 2 * this.#ignoreNext);
    // As long as it ran: half of the time is for other deliveries.
    if (found && this.worker.active())
      await this.#pause(Math.max(PAUSE_MS, runtime.monotonic() - startedAt));
    return found;
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

  /** Runs the next suspect to its end. Resolves with whether there was one. */
  async #runOne(alone: boolean): Promise<boolean> {
    const { store, places, registration } = this.worker;
    const worker = this.worker.active() ? registration.current() : null;
    const handlers = alone ? places.names : places.withRoom;
    if (worker === null || handlers.length === 0) return false;
    // Of whichever handler the suspect is, a claim that is under way meanwhile must not fill its last place.
    for (const handler of handlers) places.take(handler);
    let suspect: ClaimedDelivery | null = null;
    try {
      suspect = await store.claimSuspect({ worker, handlers, alone });
    } catch (error) {
      registration.replace(worker);
      throw error;
    } finally {
      for (const handler of handlers) if (handler !== suspect?.handler) places.free(handler);
      if (places.wanting) this.onOpen();
    }
    if (suspect === null) return false;
    await this.worker.run(suspect, worker);
    return true;
  }
}
