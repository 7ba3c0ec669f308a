import { readFile } from 'node:fs/promises';

/** A fenced block of a page, such as ```` ```ts file=src/orders.ts ````. */
export interface CodeBlock {
  readonly language: string;
  /** Attributes after the language: `file=src/orders.ts` is the entry `['file', 'src/orders.ts']`. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly code: string;
}

/**
 * Reads the fenced code blocks of a page, or of one section of it.
 *
 * @param heading text of the section's heading; subsections belong to the section. Default: the whole page.
 * @throws if the page does not have the section, or the section has no block.
 */
export async function readCodeBlocks(page: string, heading?: string): Promise<CodeBlock[]> {
  const text = await readFile(page, 'utf8');
  const section = heading === undefined ? text : sectionOf(text, heading);
  const blocks = [...section.matchAll(/^```(\w+)([^\n]*)\n(.*?)^```$/gms)];
  if (blocks.length === 0) throw new Error(`${page} has no code in section "${heading ?? ''}"`);
  return blocks.map(([, language, info, code]) => ({
    language: language!,
    attributes: new Map(
      [...info!.matchAll(/(\w+)=(\S+)/g)].map(([, name, value]) => [name!, value!]),
    ),
    code: code!,
  }));
}

function sectionOf(text: string, heading: string): string {
  // Shell comments in code blocks look like headings, so `#` is replaced in blocks.
  const prose = text.replaceAll(/^```.*?^```$/gms, (block) => block.replaceAll('#', ' '));
  const headings = [...prose.matchAll(/^(#+) (.*)$/gm)];
  const start = headings.findIndex(([, , title]) => title === heading);
  if (start === -1) return '';
  const level = headings[start]![1]!.length;
  const end = headings.slice(start + 1).find(([, marks]) => marks!.length <= level);
  return text.slice(headings[start]!.index, end?.index);
}
