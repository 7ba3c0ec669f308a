import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

const POLL_MS = 20;

/** Prints what happens as it happens, and remembers whether all of it was as expected. */
export class Report {
  #scenes = 0;
  #failures = 0;

  constructor(
    private readonly print: (line: string) => void,
    private readonly signal: AbortSignal,
    /** How long a check waits for what it expects, in milliseconds. */
    private readonly waitMs = 10_000,
  ) {}

  /** How many checks have failed. */
  get failures(): number {
    return this.#failures;
  }

  line(text = ''): void {
    this.print(text);
  }

  scene(title: string): void {
    this.line();
    this.line(`${String(++this.#scenes).padStart(2)}  ${title}`);
  }

  /** A failure that no check foresaw. */
  fail(message: string): void {
    this.#failures += 1;
    this.line(`    !!  ${message}`);
  }

  /** Looks until what is seen is what is expected, or until the time is over, and prints both. */
  async check(
    what: string,
    expected: string | number,
    see: () => unknown,
    deadlineMs = this.waitMs,
  ): Promise<void> {
    const end = performance.now() + deadlineMs;
    let seen = await see();
    while (!isDeepStrictEqual(seen, expected) && performance.now() < end) {
      await setTimeout(POLL_MS, undefined, { signal: this.signal });
      seen = await see();
    }
    const right = isDeepStrictEqual(seen, expected);
    if (!right) this.#failures += 1;
    this.line(
      `    ${right ? 'ok' : '!!'}  ${what.padEnd(50)}  expected ${String(expected).padEnd(13)}  seen ${String(seen)}`,
    );
  }
}
