/**
 * Whether an event type is covered by a pattern: the type itself, `family.*` for every type that begins with
 * `family.`, or `*` for all.
 */
export function matchesPattern(pattern: string, eventType: string): boolean {
  if (pattern === '*') return true;
  if (pattern.endsWith('.*')) return eventType.startsWith(pattern.slice(0, -1));
  return pattern === eventType;
}

/** @throws TypeError if the text is no pattern: empty, or with a `*` anywhere but at its end. */
export function assertPattern(pattern: unknown): asserts pattern is string {
  const valid =
    typeof pattern === 'string' &&
    (pattern === '*' || /^[^*]+$/.test(pattern.replace(/\.\*$/, '')));
  if (!valid) {
    const given = typeof pattern === 'string' ? `"${pattern}"` : `a ${typeof pattern}`;
    throw new TypeError(
      `@OnPaymentEvent takes an event type, "family.*" or "*"; ${given} is none of them.`,
    );
  }
}

/** How many edits away from a handled type another is taken for a misspelling of it. */
const MAX_EDITS = 2;

/** The exact event type among the patterns that `eventType` is probably a misspelling of. */
export function similarType(eventType: string, patterns: Iterable<string>): string | undefined {
  let closest: string | undefined;
  let fewest = MAX_EDITS + 1;
  for (const pattern of patterns) {
    if (pattern.endsWith('*') || Math.abs(pattern.length - eventType.length) > MAX_EDITS) continue;
    const edits = editDistance(pattern, eventType);
    if (edits < fewest) [closest, fewest] = [pattern, edits];
  }
  return closest;
}

/** Characters to insert, delete, replace or swap with their neighbour (optimal string alignment distance). */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = a[i - 1] === b[j - 1];
      const swapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        last[j]! + 1,
        row[j - 1]! + 1,
        last[j - 1]! + (same ? 0 : 1),
        swapped ? beforeLast[j - 2]! + 1 : Infinity,
      );
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length]!;
}
