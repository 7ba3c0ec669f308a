import { setTimeout } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';

const POLL_MS = 20;

/** Prints the scenes and their checks, and counts the failures. */
export class SceneReport {
  #scenes = 0;
  #failures = 0;

  constructor(
    private readonly print: (line: string) => void,
    private readonly signal: AbortSignal,
    /** How long a check waits for the expected result, in milliseconds. */
    private readonly waitMs = 10_000,
  ) {}

  /** Number of checks and scenes that have failed. */
  get failures(): number {
    return this.#failures;
  }

  /** Prints a line. */
  line(text = ''): void {
    this.print(text);
  }

  /** Prints the number and the title of the next scene. */
  scene(title: string): void {
    this.line();
    this.line(`${String(++this.#scenes).padStart(2)}  ${title}`);
  }

  /** Prints the message of an error that a scene threw, and counts the error as a failure. */
  fail(message: string): void {
    this.#failures += 1;
    this.line(`    !!  ${message}`);
  }

  /**
   * Calls `read` until `read` resolves with `expected`, or until the time limit has passed. Prints the expected result
   * and the last result.
   */
  async check(
    name: string,
    expected: string | number,
    read: () => unknown,
    timeoutMs = this.waitMs,
  ): Promise<void> {
    const end = performance.now() + timeoutMs;
    let actual = await read();
    while (!isDeepStrictEqual(actual, expected) && performance.now() < end) {
      await setTimeout(POLL_MS, undefined, { signal: this.signal });
      actual = await read();
    }
    const passed = isDeepStrictEqual(actual, expected);
    if (!passed) this.#failures += 1;
    this.line(
      `    ${passed ? 'ok' : '!!'}  ${name.padEnd(50)}  expected ${String(expected).padEnd(13)}  seen ${String(actual)}`,
    );
  }
}
