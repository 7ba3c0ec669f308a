/** HTML that is safe to send: everything put into it was escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type Part = Markup | string | number | undefined | readonly Markup[];

const MEANT: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * A template for HTML. What is put in is text, and shows as text, unless it is markup itself;
 * undefined shows nothing. Attributes must stand in double quotes.
 *
 * @example
 * markup`<p title="${reference}">${reference}</p>`
 */
export function markup(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(strings.reduce((html, text, index) => html + put(parts[index - 1]) + text));
}

function put(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Markup) return part.text;
  if (typeof part === 'object') return part.map((each) => each.text).join('');
  return String(part).replace(/[&<>"']/g, (character) => MEANT[character] ?? '');
}
