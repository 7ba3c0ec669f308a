import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { beforeAll, describe, expect, it } from '@jest/globals';
import { compileSnippets } from '../../support/docs/compile-snippets.js';
import type { SnippetErrors } from '../../support/docs/compile-snippets.js';

const root = resolve(import.meta.dirname, '../../..');
const pages = globSync(
  ['README.md', '{bench,libs/*}/README.md', 'docs/*.md', 'docs/decisions/*.md'],
  {
    cwd: root,
  },
).toSorted();

/**
 * Code that needs packages that the repository does not install. A part of the smoke test installs these packages in an
 * application, and compiles and runs the code there.
 */
const SMOKE_PARTS: Readonly<Record<string, string>> = {
  'docs/orm.md': 'orm',
  'docs/deploying.md: logging.module.ts': 'ecosystem',
  'docs/deploying.md: instrument.ts': 'ecosystem',
  'docs/deploying.md: main.ts': 'ecosystem',
  'docs/deploying.md: lambda/app.module.ts': 'lambda',
  'docs/deploying.md: lambda/express.ts': 'lambda',
  'docs/deploying.md: lambda/fastify.ts': 'lambda',
};

describe('TypeScript code in the documentation', () => {
  let errors: SnippetErrors;

  beforeAll(() => {
    errors = compileSnippets(root, pages, (page, file) => {
      return SMOKE_PARTS[page] === undefined && SMOKE_PARTS[`${page}: ${file}`] === undefined;
    });
  }, 120_000);

  it('the check of TypeScript code in the documentation includes README.md and two guides', () => {
    expect([...errors.keys()]).toEqual(
      expect.arrayContaining(['README.md', 'docs/handle-events.md', 'docs/request-a-payment.md']),
    );
  });

  it('TypeScript code in the documentation compiles with strict type checks on every page', () => {
    expect([...errors].filter(([, messages]) => messages.length > 0)).toEqual([]);
  });

  it.each(Object.entries(SMOKE_PARTS))('code of %s compiles in smoke test "%s"', (code, part) => {
    const source = readFileSync(join(root, `test/smoke/parts/${part}.ts`), 'utf8');
    expect(source).toContain(code.split(':')[0]);
  });
});
