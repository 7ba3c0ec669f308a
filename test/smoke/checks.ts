/** Prints a line for each check, and counts checks in total and for each promise. */
export class Checks {
  #passed = 0;
  #failed = 0;
  readonly #promises = new Map<string, { passed: number; failed: number }>();
  readonly #print: (line: string) => void;

  /** @param print prints a line; default: to standard output */
  constructor(print: (line: string) => void = console.log) {
    this.#print = print;
  }

  /**
   * Runs a check, which passes if the function does not throw. Returns whether it passed.
   *
   * @param title starts with the id of the promise that the check proves, for example `AP-04 esbuild, ESM: boots`
   */
  async that(title: string, check: () => unknown): Promise<boolean> {
    try {
      await check();
    } catch (error) {
      this.record(title, error instanceof Error ? error.message : String(error));
      return false;
    }
    this.record(title);
    return true;
  }

  /** Records the result of a check that ran in another process. `failure` is the reason if it failed. */
  record(title: string, failure?: string): void {
    const id = /^[A-Z]{2}-\d{2}\b/.exec(title)?.[0];
    this.#count(id, failure === undefined ? 1 : 0, failure === undefined ? 0 : 1);
    if (failure === undefined) this.#print(`ok   ${title}`);
    else this.#print(`FAIL ${title}\n     ${failure.trim().replaceAll('\n', '\n     ')}`);
  }

  /** Prints an indented line that is not a check. */
  note(text: string): void {
    this.#print(`     ${text}`);
  }

  /** Adds the counts of another instance. */
  add(other: Checks): void {
    this.#passed += other.#passed;
    this.#failed += other.#failed;
    for (const [id, { passed, failed }] of other.#promises) {
      const own = this.#promises.get(id) ?? { passed: 0, failed: 0 };
      this.#promises.set(id, { passed: own.passed + passed, failed: own.failed + failed });
    }
  }

  #count(id: string | undefined, passed: number, failed: number): void {
    this.#passed += passed;
    this.#failed += failed;
    if (id === undefined) return;
    const own = this.#promises.get(id) ?? { passed: 0, failed: 0 };
    this.#promises.set(id, { passed: own.passed + passed, failed: own.failed + failed });
  }

  /** A line for each promise with a check: its id and how many checks passed and failed, in the order of ids. */
  get promises(): string[] {
    return [...this.#promises]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([id, { passed, failed }]) => `${id}: ${passed} passed, ${failed} failed`);
  }

  /** Whether the title of any check starts with this promise. */
  covers(id: string): boolean {
    return this.#promises.has(id);
  }

  get summary(): string {
    return `${this.#passed} passed, ${this.#failed} failed`;
  }

  get failed(): boolean {
    return this.#failed > 0 || this.#passed === 0;
  }
}
