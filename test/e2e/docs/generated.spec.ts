import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { generatePages } from '../../../docs/.vitepress/generate/pages.ts';
import { findProofs, readPromises } from '../../../docs/.vitepress/generate/promises.ts';

const root = resolve(import.meta.dirname, '../../..');
const promises = readPromises(readFileSync(join(root, 'docs/promises.md'), 'utf8'));
const proofs = findProofs(root);

describe('The promises', () => {
  it('each promise has at least one test whose title starts with the id of the promise', () => {
    expect([...promises.keys()].filter((id) => !proofs.has(id))).toEqual([]);
  });

  it('docs/promises.md contains every promise id that a test title starts with', () => {
    expect([...proofs.keys()].filter((id) => !promises.has(id))).toEqual([]);
  });
});

describe('The generated parts of the documentation', () => {
  it('the generated parts of the documentation are up to date (otherwise run "npm run docs:generate")', async () => {
    for (const [page, text] of await generatePages(root)) {
      expect({ page, text: readFileSync(join(root, page), 'utf8') }).toEqual({ page, text });
    }
  });
});
