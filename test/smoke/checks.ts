/** Counts what held and what did not, and prints a line for each as it goes. */
export class Checks {
  #passed = 0;
  #failed = 0;

  /** Runs a check: it holds where nothing is thrown. Returns whether it did. */
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

  record(title: string, failure?: string): void {
    if (failure === undefined) {
      this.#passed += 1;
      console.log(`ok   ${title}`);
      return;
    }
    this.#failed += 1;
    console.log(`FAIL ${title}\n     ${failure.trim().replaceAll('\n', '\n     ')}`);
  }

  /** The last line. */
  get summary(): string {
    return `${this.#passed} passed, ${this.#failed} failed`;
  }

  get failed(): boolean {
    return this.#failed > 0 || this.#passed === 0;
  }
}
