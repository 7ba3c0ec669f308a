/** The middle of the values; of an even number, the mean of the two in the middle. `NaN` of none. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** The value that a share (0 to 1) of the values is below, interpolated. `NaN` of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? NaN;
  const above = sorted[Math.ceil(place)] ?? NaN;
  return below + (above - below) * (place - Math.floor(place));
}

/** The median of what two contenders' values of the same round are to each other. */
export function medianOfPairs(
  first: readonly number[],
  second: readonly number[],
  relate: (first: number, second: number) => number,
): number {
  return median(first.map((value, round) => relate(value, second[round] ?? NaN)));
}
