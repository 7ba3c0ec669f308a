/** Returns the error that `run` throws; `undefined` if it throws none. */
export function errorOf(run: () => unknown): Error | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** The `code` of the error that `run` throws; `undefined` if it throws none. */
export function codeOf(run: () => unknown): string | undefined {
  return (errorOf(run) as { code?: string } | undefined)?.code;
}
