import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readCodeBlocks } from '../../smoke/code-blocks.ts';

const root = resolve(import.meta.dirname, '../../..');
const examples = join(root, 'examples');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
/** The code without its layout, which differs between a file and a part of it. */
const compact = (code: string): string => code.replaceAll(/\s+|[;,]\s*$/g, '');

describe('examples/', () => {
  it('AP-23 the code that a guide shows from an example is in that example', async () => {
    const shown: string[] = [];
    for (const page of globSync('docs/*.md', { cwd: root })) {
      if (!read(page).includes(' example=')) continue;
      for (const { attributes, code } of await readCodeBlocks(join(root, page))) {
        const example = attributes.get('example');
        if (example === undefined) continue;
        shown.push(example);
        expect(compact(read(`examples/${example}`))).toContain(compact(code));
      }
    }
    expect(shown.length).toBeGreaterThan(8);
  });

  it('AP-23 the README of examples/ lists each folder, and no folder has more than four files', () => {
    const names = globSync('*/*.{ts,prisma}', { cwd: examples }).map((file) => file.split('/')[0]!);
    const readme = read('examples/README.md');
    const listed = [...readme.matchAll(/^\| \[([\w-]+)\]\(\1\)/gm)].map(([, name]) => name);
    expect(new Set(listed)).toEqual(new Set(names));
    const files = listed.map((name) => names.filter((each) => each === name).length);
    expect(Math.max(...files)).toBeLessThanOrEqual(4);
  });
});
