/** The date of a time in milliseconds. */
export function toDate(ms: string | number): Date {
  return new Date(Number(ms));
}

/** The elements of an array of numbers or booleans, from the text that PostgreSQL writes for it. */
export function elementsOf(array: string | null | undefined): string[] {
  return array == null ? [] : array.slice(1, -1).split(',');
}
