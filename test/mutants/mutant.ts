/** A small fault in the source that the specs of a promise have to find. */
export interface Mutant {
  /** Id of the promise in `docs/promises.md`, for example `WH-02`. A test whose title contains this id must fail. */
  readonly promise: string;
  /** The effect of the fault, for the report, for example `accepts a signature of any length`. */
  readonly fault: string;
  /** Path of the source file, from the root of the repository. */
  readonly file: string;
  /** Text that occurs exactly once in the file. */
  readonly replace: string;
  /** The new text, which replaces the text of `replace`. */
  readonly by: string;
  /**
   * Paths of the specs that prove the promise, from the root of the repository. Empty if only the smoke test proves the
   * promise.
   */
  readonly specs: readonly string[];
  /**
   * Why a sample leaves this mutant out. Such a mutant runs only before a release, because it needs a tool that some
   * machines do not have, or because the tests find it only in most runs.
   */
  readonly releaseOnly?: string;
  /** Part of the smoke test that proves the promise, for example `orm` for `npm run smoke -- orm`. */
  readonly smoke?: string;
}

/**
 * Applies a mutant to the text of its file.
 *
 * @throws Error if the text to replace does not occur exactly once.
 */
export function mutate(source: string, { file, replace, by, promise }: Mutant): string {
  const found = source.split(replace).length - 1;
  if (found !== 1) {
    throw new Error(
      `The mutant of ${promise} no longer applies: its text occurs ${found} times in ${file} instead of once. ` +
        'Change its entry in test/mutants/catalog.',
    );
  }
  return source.replace(replace, () => by);
}
