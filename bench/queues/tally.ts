/** What a worker's handler has been called for. */
export interface Handled {
  readonly count: number;
  /** When it was called last, in milliseconds since the epoch: comparable between the processes of a machine. */
  readonly lastAt: number;
}

/** Counts the calls of a handler that does nothing else. */
export class Tally {
  #count = 0;
  #lastAt = 0;

  readonly handle = (): void => {
    this.#count += 1;
    this.#lastAt = epochMs();
  };

  /** Since it was asked last for a new count. */
  readonly handled = (): Handled => ({ count: this.#count, lastAt: this.#lastAt });

  reset(): void {
    this.#count = 0;
  }
}

export function epochMs(): number {
  return performance.timeOrigin + performance.now();
}
