import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { defineConfig } from 'vitepress';
import llms from 'vitepress-plugin-llms';
import { withMermaid } from 'vitepress-plugin-mermaid';
import { repositoryLinks } from './repository-links.ts';
import { SIDEBAR } from './sidebar.ts';

const root = resolve(import.meta.dirname, '../..');
const { repository } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  repository: { url: string };
};
const address = repository.url.replace(/^git\+|\.git$/g, '');

export default withMermaid(
  defineConfig({
    title: 'nestjs-payments',
    description:
      'Accept payments in NestJS: verified webhooks, retried handlers, no lost or duplicate processing.',
    cleanUrls: true,
    srcExclude: ['node_modules/**', '**/README.md'],
    markdown: { config: (md) => repositoryLinks(md, { root, address }) },
    vite: { plugins: [llms({ ignoreFiles: ['api/**', 'decisions/**'] })] },
    themeConfig: {
      search: { provider: 'local' },
      outline: [2, 3],
      sidebar: SIDEBAR,
      nav: [
        { text: 'Guide', link: '/getting-started' },
        { text: 'Settings', link: '/settings' },
        { text: 'Troubleshoot', link: '/troubleshoot' },
        { text: 'API', link: '/api/' },
      ],
      socialLinks: [{ icon: 'github', link: address }],
    },
  }),
);
