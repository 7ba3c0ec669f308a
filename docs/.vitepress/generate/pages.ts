import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProofs, linkProofs } from './promises.ts';

/** The text of each page with generated parts, by path from the root of the repository. */
export function generatePages(root: string): Map<string, string> {
  const read = (page: string): string => readFileSync(join(root, page), 'utf8');
  return new Map([
    ['docs/promises.md', linkProofs(read('docs/promises.md'), findProofs(root))],
  ]);
}
