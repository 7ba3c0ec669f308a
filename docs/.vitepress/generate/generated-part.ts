/**
 * Replaces the part of a page between `<!-- generated: name -->` and `<!-- end -->`.
 *
 * @throws Error if the page has no such part.
 */
export function replacePart(page: string, name: string, text: string): string {
  const start = `<!-- generated: ${name} -->`;
  const from = page.indexOf(start);
  const to = page.indexOf('<!-- end -->', from);
  if (from < 0 || to < 0) {
    throw new Error(`The page has no generated part "${name}", from "${start}" to "<!-- end -->".`);
  }
  return `${page.slice(0, from + start.length)}\n\n${text}\n\n${page.slice(to)}`;
}
