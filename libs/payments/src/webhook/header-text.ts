const TEXTUAL: ReadonlySet<string> = new Set(['string', 'number', 'bigint', 'boolean']);

/**
 * The text of a header's value, whatever its type: Node sets strings and arrays, adapters of serverless platforms also
 * numbers. Several values are joined with commas, as Node does. `undefined` if there is no value, or one that has no
 * sensible text. Never throws.
 */
export function headerText(value: unknown): string | undefined {
  if (!Array.isArray(value)) return primitiveText(value);
  const texts = value.map(primitiveText).filter((text) => text !== undefined);
  return texts.length === 0 ? undefined : texts.join(', ');
}

function primitiveText(value: unknown): string | undefined {
  return TEXTUAL.has(typeof value) ? String(value) : undefined;
}
