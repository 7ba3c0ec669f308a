import { existsSync, globSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from '@jest/globals';
import { searchRank } from '../../../docs/.vitepress/search-rank.ts';
import { SIDEBAR } from '../../../docs/.vitepress/sidebar.ts';

const docs = resolve(import.meta.dirname, '../../../docs');
/** Paths of pages on the site. TypeDoc writes `/api/` while the site is built. */
const links = SIDEBAR.flatMap(({ items }) => items.map(({ link }) => link));

describe('The sidebar of the documentation site, which is made from README.md', () => {
  it('the sidebar of the documentation site links only to pages that exist', () => {
    const missing = links.filter((link) => {
      const file = link.endsWith('/') ? `${link}index.md` : `${link}.md`;
      return link !== '/api/' && !existsSync(join(docs, file));
    });
    expect(missing).toEqual([]);
  });

  it('the sidebar of the documentation site contains every page except the home page', () => {
    const pages = globSync('*.md', { cwd: docs }).map((file) => `/${file.replace(/\.md$/, '')}`);
    expect(pages.filter((page) => page !== '/index' && !links.includes(page))).toEqual([]);
  });
});

describe('The search of the documentation site', () => {
  // VitePress puts the source of the function into the site, so this test runs the source, too.
  const rank = runInNewContext(`(${searchRank.toString()})`) as typeof searchRank;

  it('the search of the documentation site ranks each page of the sidebar above the API reference and the decisions', () => {
    const others = ['/api/index#paymentinbox', '/decisions/0018-a-decision#context'];
    for (const link of links.filter((page) => !/^\/(api|decisions)\//.test(page))) {
      for (const other of others) expect(rank(`${link}#section`)).toBeGreaterThan(rank(other));
    }
  });
});
