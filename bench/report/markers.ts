/**
 * Puts what is generated between its markers, `<!-- bench:name -->` and `<!-- /bench:name -->`, and leaves what
 * people wrote around them.
 *
 * @throws where the page has no such markers: nothing is generated into the void.
 */
export function replaceBetweenMarkers(page: string, name: string, generated: string): string {
  const begin = `<!-- bench:${name} -->`;
  const end = `<!-- /bench:${name} -->`;
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) {
    throw new Error(`The page has no "${begin}" followed by "${end}". Put them where it belongs.`);
  }
  return `${page.slice(0, from + begin.length)}\n\n${generated.trim()}\n\n${page.slice(to)}`;
}

/** The names of the markers of a page, in their order. */
export function markersOf(page: string): string[] {
  return [...page.matchAll(/<!-- bench:([\w-]+) -->/g)].map(([, name]) => name!);
}
