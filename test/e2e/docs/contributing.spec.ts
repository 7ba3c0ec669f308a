import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const root = resolve(import.meta.dirname, '../../..');
const HEADING = 'Where to change what';

/** The rows of the table under {@link HEADING}. */
function rows(): string[] {
  const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8');
  const [, after = ''] = page.split(`\n## ${HEADING}\n`);
  const [section = ''] = after.split('\n## ');
  return section.split('\n').filter((line) => line.startsWith('|'));
}

/** Whether code is a path or a glob. Commands contain a space, and names have neither a slash nor an extension. */
const isPath = (code: string) => /^\S*(?:\/\S*|\.(?:css|js|json|md|ts))$/.test(code);

/** Returns `a.ts` and `b.ts` for `{a,b}.ts`, because a glob would match if only one of the two files exists. */
function alternativesOf(path: string): string[] {
  const [, before = '', list, after = ''] = /^(.*)\{(.+)\}(.*)$/.exec(path) ?? [];
  return list?.split(',').map((each) => `${before}${each}${after}`) ?? [path];
}

/** The paths of a row and the targets of its links, and the folder in which they may begin. */
function pathsOf(row: string): { path: string; folder: string }[] {
  const folder = /^`(.+\/)`$/.exec(row.split('|')[2]!.trim())?.[1] ?? '';
  return [...row.matchAll(/`([^`]+)`|\]\(([^)#]+)/g)]
    .map(([, code, link]) => code ?? link ?? '')
    .filter(isPath)
    .flatMap(alternativesOf)
    .map((path) => ({ path, folder }));
}

describe('CONTRIBUTING.md', () => {
  it(`the table "${HEADING}" in CONTRIBUTING.md names only paths that exist`, () => {
    const paths = rows().flatMap(pathsOf);
    expect(paths.length).toBeGreaterThan(60);
    const missing = paths.filter(({ path, folder }) =>
      [join(folder, path), path].every((each) => globSync(each, { cwd: root }).length === 0),
    );
    expect(missing).toEqual([]);
  });
});
