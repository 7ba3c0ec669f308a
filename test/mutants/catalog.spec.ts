import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { readPromises } from '../../docs/.vitepress/generate/promises.ts';
import { MUTANTS } from './catalog/index.ts';
import { mutate } from './mutant.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const contract = readdirSync(join(root, 'test/store-contract'))
  .map((file) => read(`test/store-contract/${file}`))
  .join();

/** The text of a spec, and of the cases of the store contract if the spec runs these cases. */
function testsOf(spec: string): string {
  return spec.includes('store-contract/') ? read(spec) + contract : read(spec);
}

describe('The catalogue of mutants', () => {
  it('the catalogue of mutants has a mutant for each promise', () => {
    const covered = new Set(MUTANTS.map(({ promise }) => promise));
    const promises = [...readPromises(read('docs/promises.md')).keys()];
    expect(promises.filter((id) => !covered.has(id))).toEqual([]);
    expect([...covered].filter((id) => !promises.includes(id))).toEqual([]);
  });

  it.each(MUTANTS)(
    '$promise: the mutant "$fault" applies to $file, and its specs name the promise',
    (mutant) => {
      expect(mutate(read(mutant.file), mutant)).not.toBe(read(mutant.file));
      expect(mutant.specs.length > 0 || mutant.smoke !== undefined).toBe(true);
      for (const spec of mutant.specs) {
        expect({ spec, named: testsOf(spec).includes(mutant.promise) }).toEqual({
          spec,
          named: true,
        });
      }
    },
  );

  it('the catalogue of mutants rejects a mutant whose text occurs twice', () => {
    const mutant = { promise: 'none', fault: '', file: 'a.ts', replace: 'a', by: 'b', specs: [] };
    expect(() => mutate('a a', mutant)).toThrow('occurs 2 times in a.ts');
    expect(mutate('a', mutant)).toBe('b');
  });
});
