import { Logger } from '@nestjs/common';
import { Observable } from 'rxjs';
import type { Subscriber } from 'rxjs';

/**
 * Interval between two reads, in milliseconds. A page shows the changes of another instance of the shop after this time
 * at the latest.
 */
const POLL_MS = 1000;

/** Reads the current values of all these keys at once. Keys without a value are omitted. */
export type ReadValues<T> = (keys: readonly string[]) => Promise<ReadonlyMap<string, T>>;

interface Watcher<T> {
  readonly key: string;
  readonly subscriber: Subscriber<T>;
  /** The last value that the subscriber received, as JSON. */
  lastSent: string | undefined;
}

/**
 * Values that pages watch. `PolledValues` reads the values of all watched keys together at regular intervals, and
 * therefore also finds the changes of other processes. `PolledValues` also reads the values for each new watcher, and
 * when {@link refresh} is called. Without watchers, it reads nothing.
 */
export class PolledValues<T> {
  readonly #logger = new Logger(PolledValues.name);
  readonly #watchers = new Set<Watcher<T>>();
  #timer: NodeJS.Timeout | undefined;
  #reading = false;
  #readAgain = false;

  /** @param name the name of the values in the log. */
  constructor(
    private readonly name: string,
    private readonly read: ReadValues<T>,
    private readonly pollMs = POLL_MS,
  ) {}

  /**
   * Emits the current value of a key, and each later value that differs from the previous value. If the values can't be
   * read, the observable fails, because its last value may be out of date.
   */
  watch(key: string): Observable<T> {
    return new Observable((subscriber) => {
      const watcher: Watcher<T> = { key, subscriber, lastSent: undefined };
      this.#watchers.add(watcher);
      this.refresh();
      return () => {
        this.#watchers.delete(watcher);
        if (this.#watchers.size === 0) clearTimeout(this.#timer);
      };
    });
  }

  /** Reads the watched values now. */
  refresh(): void {
    if (this.#watchers.size === 0) return;
    clearTimeout(this.#timer);
    // The current read may have started before the change, or before the new watcher was added.
    this.#readAgain = this.#reading;
    if (!this.#reading) void this.#readAll();
  }

  async #readAll(): Promise<void> {
    this.#reading = true;
    const watchers = [...this.#watchers];
    try {
      const values = await this.read([...new Set(watchers.map(({ key }) => key))]);
      for (const watcher of watchers) send(watcher, values.get(watcher.key));
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#logger.warn(
        `Closed ${watchers.length} streams, because ${this.name} can't be read: ${reason}`,
      );
      for (const { subscriber } of watchers) subscriber.error(error);
    }
    this.#reading = false;
    if (this.#readAgain) return this.refresh();
    if (this.#watchers.size > 0) this.#timer = setTimeout(() => this.refresh(), this.pollMs);
  }
}

function send<T>(watcher: Watcher<T>, value: T | undefined): void {
  if (value === undefined) return;
  const json = JSON.stringify(value);
  if (json === watcher.lastSent) return;
  watcher.lastSent = json;
  watcher.subscriber.next(value);
}
