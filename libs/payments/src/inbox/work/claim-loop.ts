import { AsyncLocalStorage } from 'node:async_hooks';
import type { ModuleLogger } from '../../errors/module-log.js';
import { describeError } from '../../errors/payments-error.js';
import { Backoff, STORE_BACKOFF } from '../../runtime/backoff.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';

/**
 * The longest time between two claims of an idle process, in milliseconds. If a wake-up is lost, a due delivery or poll
 * waits at most this long.
 */
const MAX_SLEEP_MS = 30_000;
/**
 * If a delivery or poll is still due after a claim that did not return it, the next claim follows after this many
 * milliseconds.
 */
const CLAIM_AGAIN_MS = 100;

/** What a {@link ClaimLoop} claims: deliveries, or polls. */
export interface ClaimSource {
  readonly runtime: PaymentsRuntime;
  readonly logger: ModuleLogger;
  active(): boolean;
  /** Claims and starts what is due. Resolves with `true` if the loop must claim again at once. */
  claim(): Promise<boolean>;
  /**
   * Resolves with the milliseconds until something is due: 0 or less if something is due now, `null` if nothing will be
   * due, and `undefined` if the time is not known, so that the loop sets no timer.
   */
  nextDueInMs(): Promise<number | null | undefined>;
  /** Called when a delivery or poll has become due, before it is claimed. */
  onDue(): void;
  onNothingDue(): void;
}

/**
 * Claims what is due, each time the loop is woken or a delivery or poll becomes due. Sends one claim at a time. A
 * request may wake the loop. Handlers, polls and timers must not inherit the `AsyncLocalStorage` of that request,
 * because they may do the work of other requests.
 */
export class ClaimLoop {
  readonly #outsideRequests: <R>(work: () => R) => R = AsyncLocalStorage.snapshot();
  readonly #backoff: Backoff;
  #round: Promise<void> = Promise.resolve();
  #claiming = false;
  #again = false;
  #failing = false;
  #backingOff = false;
  #cancelBackoff: () => void = () => {};
  #wakesAt = Infinity;
  #cancelSleep: () => void = () => {};

  constructor(private readonly source: ClaimSource) {
    this.#backoff = new Backoff(source.runtime, STORE_BACKOFF);
  }

  /** Whether a claim is under way or about to start. */
  get busy(): boolean {
    return this.#claiming;
  }

  /** Claims at the end of this turn of the event loop. Several calls in one turn cause one claim. */
  claimSoon(): void {
    this.#again = true;
    if (this.#claiming || this.#backingOff || !this.source.active()) return;
    this.#claiming = true;
    this.#round = this.#outsideRequests(() => this.#run());
  }

  wakeIn(ms: number): void {
    const { runtime } = this.source;
    const at = runtime.monotonic() + ms;
    if (at >= this.#wakesAt || !this.source.active()) return;
    this.#cancelSleep();
    this.#wakesAt = at;
    this.#cancelSleep = this.#outsideRequests(() =>
      runtime.schedule(ms, () => {
        this.#wakesAt = Infinity;
        this.source.onDue();
        this.claimSoon();
      }),
    );
  }

  /** Resolves when the claim that is under way has ended. Call this method when the source is not active any more. */
  async stop(): Promise<void> {
    this.#cancelSleep();
    this.#cancelBackoff();
    await this.#round;
  }

  async #run(): Promise<void> {
    const { source } = this;
    try {
      while (this.#again && source.active()) {
        await endOfTurn();
        this.#again = false;
        if (await source.claim()) this.#again = true;
      }
      await this.#sleep();
    } catch (error) {
      // Log one line per outage.
      if (!this.#failing) {
        source.logger.error(
          `The payment inbox could not be read: ${describeError(error)}. The worker retries until it succeeds.`,
        );
      }
      this.#failing = true;
      this.#backOff();
    }
    this.#claiming = false;
    if (this.#again) this.claimSoon();
  }

  /** Starts the backoff. Until the backoff has ended, nothing is claimed, even if the loop is woken. */
  #backOff(): void {
    if (!this.source.active()) return;
    this.#backingOff = true;
    this.#cancelBackoff = this.source.runtime.schedule(this.#backoff.nextMs(), () => {
      this.#backingOff = false;
      this.claimSoon();
    });
  }

  async #sleep(): Promise<void> {
    const { source } = this;
    if (!source.active()) return;
    const next = await source.nextDueInMs();
    if (next === undefined) return;
    if (this.#failing) source.logger.log('The payment inbox can be read again.');
    this.#failing = false;
    this.#backoff.reset();
    if (this.#again) return;
    if (next !== null && next <= 0) return this.wakeIn(CLAIM_AGAIN_MS);
    this.wakeIn(Math.min(MAX_SLEEP_MS, Math.ceil(next ?? MAX_SLEEP_MS)));
    source.onNothingDue();
  }
}

function endOfTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
