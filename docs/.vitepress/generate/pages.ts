import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { decisionTable } from './decisions.ts';
import { replacePart } from './marked-part.ts';
import { findProofs, linkProofs } from './promises.ts';

/** The formatted text of each page with generated parts, by path from the root of the repository. */
export async function generatePages(root: string): Promise<Map<string, string>> {
  const pages: Record<string, (page: string) => string> = {
    'docs/promises.md': (page) => linkProofs(page, findProofs(root)),
    'docs/decisions/index.md': (page) => replacePart(page, 'decisions', decisionTable(root)),
  };
  const generated = new Map<string, string>();
  for (const [page, generate] of Object.entries(pages)) {
    const path = join(root, page);
    const text = generate(readFileSync(path, 'utf8'));
    const options = await resolveConfig(path);
    generated.set(page, await format(text, { ...options, filepath: path }));
  }
  return generated;
}
