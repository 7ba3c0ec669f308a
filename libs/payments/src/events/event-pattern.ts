/**
 * Whether an event type is covered by a pattern: the type itself, `family.*` for every type that begins with
 * `family.`, or `*` for all.
 */
export function matchesPattern(pattern: string, eventType: string): boolean {
  if (pattern === '*') return true;
  if (pattern.endsWith('.*')) return eventType.startsWith(pattern.slice(0, -1));
  return pattern === eventType;
}

/** @throws TypeError where the text is no pattern: empty, or with a `*` anywhere but last. */
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
