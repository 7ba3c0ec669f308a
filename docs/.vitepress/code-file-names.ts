import type { MarkdownRenderer } from 'vitepress';

/**
 * Shows the file name of a code block (```` ```ts file=src/orders.ts ````), or of the example with its code
 * (```` ```ts example=prisma/main.ts ````), instead of its language.
 */
export function codeFileNames(md: MarkdownRenderer): void {
  const fence = md.renderer.rules.fence!;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const name = /\b(?:file|example)=(\S+)/.exec(tokens[index]?.info ?? '')?.[1];
    const html = fence(tokens, index, ...rest);
    if (name === undefined) return html;
    const label = `<span class="lang">${md.utils.escapeHtml(name)}</span>`;
    return html.replace(/<span class="lang">[^<]*<\/span>/, () => label);
  };
}
