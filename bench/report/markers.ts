/**
 * Replaces the text between each pair of markers `<!-- bench:name -->` and `<!-- /bench:name -->` of a page. The text
 * outside the markers stays unchanged.
 */
export function replaceMarked(
  page: string,
  generate: (name: string, old: string) => string,
): string {
  return page.replace(
    /(<!-- bench:([\w-]+) -->)(.*?)(<!-- \/bench:\2 -->)/gs,
    (_, begin: string, name: string, old: string, end: string) =>
      `${begin}\n\n${generate(name, old.trim()).trim()}\n\n${end}`,
  );
}
