/** What `run` throws; `undefined` where it throws nothing. */
export function errorOf(run: () => unknown): Error | undefined {
  try {
    run();
    return undefined;
  } catch (error) {
    return error as Error;
  }
}

/** The `code` of what `run` throws; `undefined` where it throws nothing. */
export function codeOf(run: () => unknown): string | undefined {
  return (errorOf(run) as { code?: string } | undefined)?.code;
}
