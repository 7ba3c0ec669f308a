/** Prints a line for each check, and counts checks as a whole and per promise. */
export class Checks {
  #passed = 0;
  #failed = 0;
  readonly #promises = new Map<string, { passed: number; failed: number }>();

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
    const counts =
      id === undefined ? undefined : (this.#promises.get(id) ?? { passed: 0, failed: 0 });
    if (id !== undefined && counts !== undefined) this.#promises.set(id, counts);
    if (failure === undefined) {
      this.#passed += 1;
      if (counts) counts.passed += 1;
      console.log(`ok   ${title}`);
      return;
    }
    this.#failed += 1;
    if (counts) counts.failed += 1;
    console.log(`FAIL ${title}\n     ${failure.trim().replaceAll('\n', '\n     ')}`);
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
