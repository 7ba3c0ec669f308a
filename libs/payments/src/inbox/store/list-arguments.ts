/**
 * The parts of a cursor of a store.
 *
 * @throws TypeError if `after` is not a cursor of this store.
 */
export function parseCursor(after: unknown, pattern: RegExp): RegExpExecArray {
  const parts = typeof after === 'string' ? pattern.exec(after) : null;
  if (parts !== null) return parts;
  throw new TypeError(
    '"after" must be the "next" of the previous page from the same inbox, or null for the first page.',
  );
}

/** Reads the `next` of a page of events: the number of its last event. */
export function parseSeq(next: string): number {
  return Number(parseCursor(next, /^\d{1,16}$/)[0]);
}

/** @throws TypeError for an invalid time of a filter. */
export function assertTimes({ from, to }: { readonly from?: Date; readonly to?: Date }): void {
  if (from !== undefined) assertDate('from', from);
  if (to !== undefined) assertDate('to', to);
}

/** @throws TypeError unless `value` is a `Date` with a valid time. */
export function assertDate(name: string, value: unknown): void {
  if (value instanceof Date && !Number.isNaN(value.getTime())) return;
  throw new TypeError(
    `"${name}" must be a valid Date; for a text, use new Date(text) with a text such as 2026-01-31T12:00:00Z.`,
  );
}
