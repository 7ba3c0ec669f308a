/** Returns the middle value, or the mean of the two middle values. Returns `NaN` without values. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** Returns the interpolated value below which a share (0 to 1) of the values lies, or `NaN` without values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const position = (sorted.length - 1) * share;
  const below = sorted[Math.floor(position)] ?? NaN;
  const above = sorted[Math.ceil(position)] ?? NaN;
  return below + (above - below) * (position - Math.floor(position));
}

/** Calls `relate` with the values of two contenders in each round, and returns the median of the results. */
export function medianOfPairs(
  first: readonly number[],
  second: readonly number[],
  relate: (first: number, second: number) => number,
): number {
  return median(first.map((value, round) => relate(value, second[round] ?? NaN)));
}
