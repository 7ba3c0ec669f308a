/**
 * Replaces the text between the markers `<!-- bench:name -->` and `<!-- /bench:name -->` of a page. The text outside
 * the markers stays.
 *
 * @throws if the page does not have the two markers in this order.
 */
export function replaceBetweenMarkers(page: string, name: string, generated: string): string {
  const begin = `<!-- bench:${name} -->`;
  const end = `<!-- /bench:${name} -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) {
    throw new Error(
      `The page has no "${begin}" followed by "${end}". Add both markers to the page.`,
    );
  }
  return `${page.slice(0, from + begin.length)}\n\n${generated.trim()}\n\n${page.slice(to)}`;
}

/** The names of the markers of a page, in order. */
export function markersOf(page: string): string[] {
  return [...page.matchAll(/<!-- bench:([\w-]+) -->/g)].map(([, name]) => name!);
}
