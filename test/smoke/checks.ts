/** Prints a line for each check, and counts checks as a whole and per promise. */
export class Checks {
  #passed = 0;
  #failed = 0;
  readonly #promises = new Map<string, { passed: number; failed: number }>();
  readonly #print: (line: string) => void;

  /** @param print where the lines go; default: standard output */
  constructor(print: (line: string) => void = console.log) {
    this.#print = print;
  }

  /**
   * Runs a check: it passes if nothing is thrown. Returns whether it passed.
   *
   * @param title starts with the id of the promise that the check proves, for example `AP-04 esbuild, ESM: it boots`
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

  /** Records a check that ran elsewhere; it failed if there is a `failure`. */
  record(title: string, failure?: string): void {
    const id = /^[A-Z]{2}-\d{2}\b/.exec(title)?.[0];
    this.#count(id, failure === undefined ? 1 : 0, failure === undefined ? 0 : 1);
    if (failure === undefined) this.#print(`ok   ${title}`);
    else this.#print(`FAIL ${title}\n     ${failure.trim().replaceAll('\n', '\n     ')}`);
  }

  /** Prints a line that is no check, indented under the checks. */
  note(text: string): void {
    this.#print(`     ${text}`);
  }

  /** Adds the counts of another instance to these. */
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

  /** The promises that at least one check has proven, with the number of checks, in the order of their ids. */
  get promises(): string[] {
    return [...this.#promises]
      .toSorted(([a], [b]) => a.localeCompare(b))
      .map(([id, { passed, failed }]) => `${id}: ${passed} passed, ${failed} failed`);
  }

  /** Whether any check names this promise. */
  covers(id: string): boolean {
    return this.#promises.has(id);
  }

  /** The last line. */
  get summary(): string {
    return `${this.#passed} passed, ${this.#failed} failed`;
  }

  get failed(): boolean {
    return this.#failed > 0 || this.#passed === 0;
  }
}
