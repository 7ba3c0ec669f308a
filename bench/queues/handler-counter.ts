/** The calls of a worker's handler. */
export interface Handled {
  readonly count: number;
  /** Time of the last call, in milliseconds since the epoch: comparable between the processes of a machine. */
  readonly lastAt: number;
}

/** A handler that does nothing but count its calls. */
export class HandlerCounter {
  #count = 0;
  #lastAt = 0;

  /** The handler. */
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

/** Milliseconds since the epoch, with fractions. */
export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
