/** The calls of a worker's handler. */
export interface Handled {
  readonly count: number;
  /**
   * Time of the last call in milliseconds since the epoch, so that the times of several processes on one machine can be
   * compared.
   */
  readonly lastAt: number;
}

/** A handler that only counts its calls. */
export class HandlerCounter {
  #count = 0;
  #lastAt = 0;

  readonly handle = (): void => {
    this.#count += 1;
    this.#lastAt = epochMs();
  };

  /** The calls since the last {@link reset}. */
  readonly handled = (): Handled => ({ count: this.#count, lastAt: this.#lastAt });

  reset(): void {
    this.#count = 0;
  }
}

/** Returns the milliseconds since the epoch, with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
