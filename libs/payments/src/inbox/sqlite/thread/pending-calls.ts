/** How to answer a call. */
export interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

interface Waiting extends Pending {
  /** When it times out, by {@link performance.now}: real time, because the call waits for a disk. */
  readonly until: number;
}

/** Calls that wait for their answers. They share one timer, because most are answered long before it ends. */
export class PendingCalls {
  /** In the order in which they time out. */
  readonly #calls = new Map<number, Waiting>();
  /** Whether the timer is set, for the oldest or for one that was. */
  #watching = false;

  /** `onLate` is called for each call without an answer within `timeoutMs`. */
  constructor(
    private readonly timeoutMs: number,
    private readonly onLate: (call: Pending) => void,
    /** Called when nothing is pending any more. */
    private readonly onIdle: () => void,
  ) {}

  get size(): number {
    return this.#calls.size;
  }

  add(number: number, { resolve, reject }: Pending): void {
    this.#calls.set(number, { resolve, reject, until: performance.now() + this.timeoutMs });
    if (!this.#watching) this.#watch(this.timeoutMs);
  }

  /** Removes a call, for it to be answered; `undefined` if it timed out. */
  take(number: number): Pending | undefined {
    const call = this.#calls.get(number);
    if (call === undefined) return undefined;
    this.#calls.delete(number);
    if (this.#calls.size === 0) this.onIdle();
    return call;
  }

  rejectAll(error: Error): void {
    for (const number of this.#calls.keys()) this.take(number)?.reject(error);
  }

  #watch(ms: number): void {
    this.#watching = true;
    setTimeout(() => this.#giveUpLate(), ms).unref();
  }

  #giveUpLate(): void {
    this.#watching = false;
    const now = performance.now();
    for (const [number, call] of this.#calls) {
      if (call.until > now) {
        this.#watch(call.until - now);
        return;
      }
      this.take(number);
      this.onLate(call);
    }
  }
}
