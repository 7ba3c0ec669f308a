import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';

/** Reads the present values of these names, in one go. A name without a value is left out. */
export type ReadValues<T> = (names: readonly string[]) => Promise<ReadonlyMap<string, T>>;

interface Watcher<T> {
  readonly name: string;
  readonly subscriber: Subscriber<T>;
  /** What it was last told, as JSON. */
  told: string | undefined;
}

/**
 * Values that are watched. All that anybody watches is read together, every `everyMs` milliseconds, at once for one who
 * has just come, and on {@link look}; while nobody watches, nothing is read. So what another process writes into the
 * database they are read from is seen as well.
 */
export class WatchedValues<T> {
  readonly #watchers = new Set<Watcher<T>>();
  #timer: NodeJS.Timeout | undefined;
  #looking = false;
  #again = false;

  constructor(
    private readonly read: ReadValues<T>,
    private readonly everyMs: number,
  ) {}

  /**
   * The present value of a name, and then each that differs from the one before. Where it can't be read, it errors:
   * a watcher that is told nothing would take the value it has for the present one.
   */
  watch(name: string): Observable<T> {
    return new Observable((subscriber) => {
      const watcher: Watcher<T> = { name, subscriber, told: undefined };
      this.#watchers.add(watcher);
      this.look();
      return () => {
        this.#watchers.delete(watcher);
        if (this.#watchers.size === 0) clearTimeout(this.#timer);
      };
    });
  }

  /** Reads what is watched now: something may have changed. */
  look(): void {
    if (this.#watchers.size === 0) return;
    clearTimeout(this.#timer);
    // One who comes while it is being read may have come too late for this reading.
    this.#again = this.#looking;
    if (!this.#looking) void this.#look();
  }

  async #look(): Promise<void> {
    this.#looking = true;
    const watchers = [...this.#watchers];
    try {
      const values = await this.read([...new Set(watchers.map(({ name }) => name))]);
      for (const watcher of watchers) tell(watcher, values.get(watcher.name));
    } catch (error) {
      for (const { subscriber } of watchers) subscriber.error(error);
    }
    this.#looking = false;
    if (this.#again) return this.look();
    if (this.#watchers.size > 0) this.#timer = setTimeout(() => this.look(), this.everyMs);
  }
}

function tell<T>(watcher: Watcher<T>, value: T | undefined): void {
  if (value === undefined) return;
  const json = JSON.stringify(value);
  if (json === watcher.told) return;
  watcher.told = json;
  watcher.subscriber.next(value);
}
