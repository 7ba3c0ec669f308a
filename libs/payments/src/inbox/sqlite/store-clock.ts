import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';

/** The time of an operation, by the clocks of the process that requested it. In whole milliseconds. */
export interface Times {
  /** The wall clock: receipts, history, retention. It may jump. */
  readonly wall: number;
  /** The clock of due times. It continues over restarts, and the processes of one file agree on it. */
  readonly clock: number;
  /** `PaymentsRuntime.monotonic()`: intervals within this process. */
  readonly monotonic: number;
}

/** The clock as it was stored in the file; zeros in a new file. */
export type StoredClock = Pick<Times, 'wall' | 'clock'>;

/**
 * The clock of due times: monotonic, so that a jump of the wall clock neither delays a delivery nor makes it due.
 * A process continues the clock that the file has; only for the time since it was stored does it use the wall clock.
 */
export class StoreClock {
  #offset: number | undefined;

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** Continues the stored clock. Calls after the first have no effect. */
  start(stored: StoredClock): void {
    if (this.#offset !== undefined) return;
    const wall = Math.floor(this.runtime.now());
    const clock = stored.wall === 0 ? wall : stored.clock + Math.max(0, wall - stored.wall);
    this.#offset = clock - Math.floor(this.runtime.monotonic());
  }

  /** Sets the clock forward to what another process has; never back. */
  advanceTo(clock: number): void {
    const behind = clock - this.read().clock;
    if (behind > 0) this.#offset = (this.#offset ?? 0) + behind;
  }

  read(): Times {
    const monotonic = Math.floor(this.runtime.monotonic());
    const wall = Math.floor(this.runtime.now());
    return { wall, clock: monotonic + (this.#offset ?? 0), monotonic };
  }
}
