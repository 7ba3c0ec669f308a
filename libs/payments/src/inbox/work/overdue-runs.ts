import type { ThrottledLog } from '../../errors/throttled-log.js';
import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';

/** How long a handler may take to end after its signal was aborted, before it counts as ignoring the signal. */
const END_MS = 500;

/** The runs of handlers that ignore their signal: their attempts have failed, and they still run. */
export class OverdueRuns {
  #count = 0;

  constructor(
    private readonly runtime: PaymentsRuntime,
    private readonly log: ThrottledLog,
  ) {}

  /** How many there are now. */
  get count(): number {
    return this.#count;
  }

  /** The time of a run is up and its signal was aborted. `ended` resolves when its handler ends. */
  add(handler: string, ended: Promise<unknown>): void {
    let counted = false;
    const cancel = this.runtime.schedule(END_MS, () => {
      counted = true;
      this.#count += 1;
      this.log.warn(
        `overdue ${handler}`,
        () =>
          `Handler ${handler} still runs although its time is up and its signal was aborted (${this.#count} such runs ` +
          'in this process). It may overlap with the next attempt. Pass context.signal to what it calls.',
      );
    });
    void ended.then(() => {
      cancel();
      if (counted) this.#count -= 1;
    });
  }
}
