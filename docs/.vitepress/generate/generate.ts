/**
 * Writes the generated parts of the documentation: `npm run docs:generate`. `test/e2e/docs/generated.spec.ts` fails if they are not
 * up to date.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { generatePages } from './pages.ts';

const root = resolve(import.meta.dirname, '../../..');
for (const [page, text] of await generatePages(root)) {
  const path = join(root, page);
  if (readFileSync(path, 'utf8') === text) continue;
  writeFileSync(path, text);
  console.log(`updated ${page}`);
}
