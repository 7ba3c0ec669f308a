import { join } from 'node:path';
import { readCodeBlocks } from './code-blocks.ts';
import type { NestGenerator } from './nest-generator.ts';
import type { NodeProgram } from './smoke-part.ts';

/** A test runner configuration for the generated application. */
export interface TestRecipe {
  readonly name: string;
  /** Packages to install for the recipe. */
  readonly tools: readonly string[];
  /** Options to add to Jest's configuration; undefined for other runners. */
  readonly config?: Readonly<Record<string, unknown>>;
  readonly env: NodeJS.ProcessEnv;
  /** Whether the recipe works with this Node. */
  readonly fits: (node: NodeProgram) => boolean;
}

/**
 * Reads the test runner configurations for a generated application from `docs/testing.md`. The first is the recommended
 * configuration.
 */
export async function readTestRecipes(
  root: string,
  { jest, module }: NestGenerator,
): Promise<TestRecipe[]> {
  const always = (): boolean => true;
  if (jest === undefined) return [{ name: 'Vitest', tools: [], env: {}, fits: always }];
  const blocks = await readCodeBlocks(join(root, 'docs/testing.md'), 'Jest');
  const config = (file: string): Record<string, unknown> => {
    const block = blocks.find(({ attributes }) => attributes.get('file') === file);
    if (block === undefined) throw new Error(`docs/testing.md has no ${file}`);
    return JSON.parse(block.code) as Record<string, unknown>;
  };
  const [options] = blocks.flatMap(
    ({ code }) => /^NODE_OPTIONS=(\S+) npm test$/m.exec(code)?.[1] ?? [],
  );
  if (options === undefined) throw new Error('docs/testing.md has no NODE_OPTIONS');
  return [
    { name: 'ts-jest', tools: [], config: config('jest.json'), env: {}, fits: always },
    {
      name: '@swc/jest',
      tools: ['@swc/jest@0.2', '@swc/core@1'],
      config: config('jest-swc.json'),
      env: {},
      // The older generator writes a test with `import * as request`, which does not work with SWC.
      fits: () => module === 'nodenext',
    },
    {
      name: 'no transform',
      tools: [],
      config: {},
      env: { NODE_OPTIONS: options },
      fits: ({ name }) => jest >= 30 && Number(/\d+/.exec(name)) >= 24,
    },
  ];
}
