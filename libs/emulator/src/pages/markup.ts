/** HTML that is safe to send: all inserted text is escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

type Part = Markup | string | number | undefined | readonly Markup[];

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/**
 * A template tag for HTML. Inserted values are escaped, unless they are markup themselves; undefined inserts nothing.
 * Attribute values need double quotes.
 *
 * @example
 * markup`<p title="${reference}">${reference}</p>`
 */
export function markup(strings: TemplateStringsArray, ...parts: readonly Part[]): Markup {
  return new Markup(strings.reduce((html, text, index) => html + toHtml(parts[index - 1]) + text));
}

function toHtml(part: Part): string {
  if (part === undefined) return '';
  if (part instanceof Markup) return part.text;
  if (typeof part === 'object') return part.map((each) => each.text).join('');
  return String(part).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}
