import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig } from 'vitepress';
import llms from 'vitepress-plugin-llms';
import { withMermaid } from 'vitepress-plugin-mermaid';
import { repositoryOf } from '../../release/workspace.ts';
import type { Manifest } from '../../release/workspace.ts';
import { codeFileNames } from './code-file-names.ts';
import { repositoryLinks } from './repository-links.ts';
import { searchRank } from './search-rank.ts';
import { SIDEBAR } from './sidebar.ts';

const root = resolve(import.meta.dirname, '../..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
const address = `https://github.com/${repositoryOf(manifest)}`;

const GITHUB_ICON =
  '<svg viewBox="0 0 16 16" xmlns="http://www.w3.org/2000/svg"><path d="M8 0C3.58 0 0 3.58 0 8c0 3.54 2.29 6.53 5.47 7.59.4.07.55-.17.55-.38 0-.19-.01-.82-.01-1.49-2.01.37-2.53-.49-2.69-.94-.09-.23-.48-.94-.82-1.13-.28-.15-.68-.52-.01-.53.63-.01 1.08.58 1.23.82.72 1.21 1.87.87 2.33.66.07-.52.28-.87.51-1.07-1.78-.2-3.64-.89-3.64-3.95 0-.87.31-1.59.82-2.15-.08-.2-.36-1.02.08-2.12 0 0 .67-.21 2.2.82.64-.18 1.32-.27 2-.27s1.36.09 2 .27c1.53-1.04 2.2-.82 2.2-.82.44 1.1.16 1.92.08 2.12.51.56.82 1.27.82 2.15 0 3.07-1.87 3.75-3.65 3.95.29.25.54.73.54 1.48 0 1.07-.01 1.93-.01 2.2 0 .21.15.46.55.38A8.01 8.01 0 0 0 16 8c0-4.42-3.58-8-8-8z"/></svg>';

export default withMermaid(
  defineConfig({
    title: 'nestjs-payments',
    description:
      'Accept payments in NestJS: verified webhooks, retried handlers, no lost or duplicate processing.',
    cleanUrls: true,
    srcExclude: ['node_modules/**', '**/README.md'],
    // Without an icon, browsers request /favicon.ico.
    head: [['link', { rel: 'icon', href: 'data:,' }]],
    markdown: {
      config: (md) => {
        repositoryLinks(md, { root, address });
        codeFileNames(md);
      },
    },
    mermaid: {
      flowchart: { useMaxWidth: false },
      state: { useMaxWidth: false },
      sequence: { useMaxWidth: false },
    },
    vite: { plugins: [llms({ ignoreFiles: ['api/**', 'decisions/**'] })] },
    themeConfig: {
      search: {
        provider: 'local',
        options: { miniSearch: { searchOptions: { boostDocument: searchRank } } },
      },
      outline: [2, 3],
      sidebar: SIDEBAR,
      nav: [
        { text: 'Guide', link: '/getting-started' },
        { text: 'Settings', link: '/settings' },
        { text: 'Troubleshoot', link: '/troubleshoot' },
        { text: 'API', link: '/api/' },
      ],
      // The icon is part of the page, because VitePress would load a named icon from another host.
      socialLinks: [{ icon: { svg: GITHUB_ICON }, link: address, ariaLabel: 'Repository' }],
    },
  }),
);
