/** Text that is HTML already. */
export class Html {
  constructor(readonly text: string) {}
}

/** HTML whose values are text, unless they are {@link Html} themselves. */
export function markup(
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Html | readonly Html[])[]
): Html {
  return new Html(strings.reduce((text, part, at) => text + toText(values[at - 1]!) + part));
}

function toText(value: string | number | Html | readonly Html[]): string {
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(({ text }) => text).join('');
  return String(value).replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
