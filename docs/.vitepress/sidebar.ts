import { readFileSync } from 'node:fs';

/** A row of the table of pages in the README: a topic, and links to pages of `docs/`. */
const ROW = /^\| (\w+) +\| (\[[^|]*\]\(docs\/[^|]*)\|$/gm;
/** The title and the path of a page, without its extension. */
const PAGE = /\[([^\]]+)\]\(docs(\/[\w-]+\/?)/g;

/** The pages by topic, as in the README of the repository, and the API reference, which only the site has. */
export const SIDEBAR = Array.from(
  readFileSync(new URL('../../README.md', import.meta.url), 'utf8').matchAll(ROW),
  ([, topic = '', pages = '']) => ({
    text: topic,
    items: Array.from(pages.matchAll(PAGE), ([, text = '', link = '']) => ({ text, link })),
  }),
);
SIDEBAR.find(({ text }) => text === 'Reference')?.items.push({ text: 'API', link: '/api/' });
