import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { machineMs } from './thread/connection.js';
import type { StoredClock, Times } from './thread/connection.js';

/**
 * The store clock of one process. The clock is monotonic, so that a jump of the wall clock neither delays a delivery
 * nor makes a delivery due too early. The file contains the clock as the last process stored it. A process that opens
 * the file continues this clock, and uses the wall clock only to measure the time since the clock was stored.
 */
export class StoreClock {
  #offset: number | undefined;

  constructor(
    private readonly runtime: PaymentsRuntime,
    private readonly machine: () => number = machineMs,
  ) {}

  /** Continues the stored clock. Only the first call has an effect. */
  start(stored: StoredClock): void {
    if (this.#offset !== undefined) return;
    const wall = Math.floor(this.runtime.now());
    const clock = stored.wall === 0 ? wall : stored.clock + Math.max(0, wall - stored.wall);
    this.#offset = clock - Math.floor(this.runtime.monotonic());
  }

  /** Sets the clock forward to the clock of another process, and never back. */
  advanceTo(clock: number): void {
    const behind = clock - this.read().clock;
    if (behind > 0) this.#offset = (this.#offset ?? 0) + behind;
  }

  read(): Times {
    const monotonic = this.runtime.monotonic();
    const wall = Math.floor(this.runtime.now());
    const clock = Math.floor(monotonic) + (this.#offset ?? 0);
    return { wall, clock, processOffset: monotonic - this.machine() };
  }
}
