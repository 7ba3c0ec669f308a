import { existsSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import type { MarkdownRenderer } from 'vitepress';

/** Files of `docs/` that are no pages. */
const DATA = /\.(?:json|yml)$/;

/**
 * A page links to files of the repository outside `docs/`, and to data files, by relative paths that begin with a dot, as
 * GitHub shows them. On the site, such a link leads to the file on GitHub.
 *
 * @throws Error while the site is built, if the file of a link does not exist.
 */
export function repositoryLinks(
  md: MarkdownRenderer,
  { root, address }: { root: string; address: string },
): void {
  const docs = join(root, 'docs');
  md.core.ruler.push('repository-links', ({ tokens, env }) => {
    const page = (env as { path: string }).path;
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : null;
      if (href === null || !href.startsWith('.')) continue;
      const [path = '', anchor] = href.split('#');
      const file = resolve(dirname(page), path);
      if (!relative(docs, file).startsWith('..') && !DATA.test(path)) continue;
      if (!existsSync(file)) {
        throw new Error(
          `${relative(root, page)} links to ${relative(root, file)}, which does not exist.`,
        );
      }
      const hash = anchor === undefined ? '' : `#${anchor}`;
      token.attrSet('href', `${address}/blob/main/${relative(root, file)}${hash}`);
    }
  });
}
