import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';

/** The time of an operation in whole milliseconds, by the clocks of the process that requested it. */
export interface Times {
  /** The wall clock, for receipts, history and retention. It may jump. */
  readonly wall: number;
  /** The store clock, for due times. It continues after a restart, and all processes of one file use the same. */
  readonly clock: number;
  /** The process clock (`PaymentsRuntime.monotonic()`), for intervals within this process. */
  readonly monotonic: number;
}

/** The store clock in the file, and the wall clock when it was stored; zeros in a new file. */
export type StoredClock = Pick<Times, 'wall' | 'clock'>;

/**
 * The store clock of one process: monotonic, so that a jump of the wall clock neither delays a delivery nor makes it
 * due. The process continues the clock in the file. It uses the wall clock only for the time since the clock was
 * stored.
 */
export class StoreClock {
  #offset: number | undefined;

  constructor(private readonly runtime: PaymentsRuntime) {}

  /** Continues the stored clock. Only the first call has an effect. */
  start(stored: StoredClock): void {
    if (this.#offset !== undefined) return;
    const wall = Math.floor(this.runtime.now());
    const clock = stored.wall === 0 ? wall : stored.clock + Math.max(0, wall - stored.wall);
    this.#offset = clock - Math.floor(this.runtime.monotonic());
  }

  /** Sets the clock forward to the clock of another process; never back. */
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
