/** Lets so many deliveries be under way at once; the others wait in line. */
export class DeliverySlots {
  readonly #line: (() => void)[] = [];
  #free: number;

  constructor(slots: number) {
    this.#free = slots;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--;
    else await new Promise<void>((enter) => this.#line.push(enter));
    try {
      return await work();
    } finally {
      const next = this.#line.shift();
      if (next) next();
      else this.#free++;
    }
  }
}
