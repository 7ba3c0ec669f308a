import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Checks } from '../checks.ts';
import { npm, run } from '../../support/processes/run-command.ts';
import { writeDocumentedCode } from '../documented-code.ts';
import type { SmokeContext, SmokePart } from '../smoke-part.ts';

/**
 * The promises that examples prove. An example proves a promise only if its code matches the pattern of the API of this
 * promise.
 */
const PROVEN_BY_USE: ReadonlyMap<string, RegExp> = new Map([
  ['AP-11', /\b(?:paymentEvent|handlerContext)\(/],
  ['AP-12', /\b(?:deliver|settled)\(/],
  ['AP-13', /\bnew (?:FakePaymentsApi|TestRuntime)\(/],
  ['AP-14', /^/],
]);

/** A test runner with its configuration of docs/testing.md, in a separate application. */
interface Runner {
  readonly name: string;
  readonly type: 'module' | 'commonjs';
  readonly dependencies: Readonly<Record<string, string>>;
  readonly compilerOptions: Readonly<Record<string, unknown>>;
  readonly command: readonly string[];
  /** Specs of the guide that are left out because they need ES modules. */
  readonly without?: readonly string[];
}

const TOOLS = {
  '@types/node': '24.19.2',
  '@types/pg': '8.23.1',
  '@types/supertest': '7.2.1',
  'class-transformer': '0.5.1',
  'reflect-metadata': '0.2.2',
  rxjs: '7.8.2',
  supertest: '7.3.2',
};
const NEST_12 = {
  ...TOOLS,
  '@nestjs/common': '12.5.1',
  '@nestjs/config': '12.0.1',
  '@nestjs/core': '12.5.1',
  '@nestjs/platform-express': '12.5.1',
  '@nestjs/testing': '12.1.1',
  'class-validator': '0.15.1',
  msw: '3.0.5',
  typescript: '6.0.3',
};
const NEST_11 = {
  ...TOOLS,
  '@nestjs/common': '11.2.10',
  '@nestjs/config': '4.0.4',
  '@nestjs/core': '11.2.10',
  '@nestjs/platform-express': '11.2.10',
  '@nestjs/testing': '11.2.6',
  'class-validator': '0.14.4',
  msw: '2.9.0',
  typescript: '5.9.3',
};
const JEST = { '@types/jest': '30.0.0', jest: '30.5.2', 'ts-jest': '29.4.15' };
const JEST_COMMAND = ['node_modules/jest/bin/jest.js', '--json', '--config'];
const DECORATORS = { experimentalDecorators: true, emitDecoratorMetadata: true };
const ES_MODULES = { ...DECORATORS, target: 'ES2023', module: 'nodenext', strict: true };
const COMMONJS = {
  ...DECORATORS,
  target: 'ES2023',
  module: 'commonjs',
  strict: true,
  esModuleInterop: true,
  // Each file is compiled separately, without the type checker, which would take most of the time.
  isolatedModules: true,
};

const VITEST: Runner = {
  name: 'Vitest, Nest 12',
  type: 'module',
  dependencies: { ...NEST_12, vite: '8.3.8', vitest: '4.1.12' },
  compilerOptions: ES_MODULES,
  command: [
    'node_modules/vitest/vitest.mjs',
    'run',
    '--reporter=json',
    '--config',
    'vitest.config.mjs',
  ],
};
const JEST_COMMONJS: Runner = {
  name: 'Jest in CommonJS, Nest 11',
  type: 'commonjs',
  dependencies: { ...NEST_11, ...JEST },
  compilerOptions: COMMONJS,
  command: [...JEST_COMMAND, 'jest.cjs.config.mjs'],
  without: ['emulator.spec.ts'],
};
const JEST_ES_MODULES: Runner = {
  name: 'Jest with ES modules, Nest 12',
  type: 'module',
  dependencies: { ...NEST_12, ...JEST },
  compilerOptions: ES_MODULES,
  command: ['--experimental-vm-modules', ...JEST_COMMAND, 'jest.esm.config.mjs'],
};

export const part: SmokePart = {
  description: 'every example of docs/testing.md: passes in Vitest and in Jest',
  async run(context, checks) {
    const runners = context.all
      ? [VITEST, JEST_COMMONJS, JEST_ES_MODULES]
      : [VITEST, JEST_COMMONJS];
    for (const [index, runner] of runners.entries()) {
      await checkRunner(runner, join(context.folder, String(index)), context, checks);
    }
  },
};

async function checkRunner(
  runner: Runner,
  folder: string,
  context: SmokeContext,
  checks: Checks,
): Promise<void> {
  const { name, without = [] } = runner;
  const specs = (await install(runner, folder, context)).filter(
    (file) => file.endsWith('.spec.ts') && !without.includes(file),
  );
  // The default limit of 5 s is too short for the first import of the packages on a busy machine.
  const args = [...runner.command, '--testTimeout=30000', ...specs];
  const { stdout, output } = await run(context.node.path, args, {
    cwd: folder,
    timeoutMs: 120_000,
  });
  const results = resultsOf(stdout);
  for (const spec of specs) {
    const result = results.find((candidate) => candidate.name.endsWith(`/${spec}`));
    const passed = result?.status === 'passed' && result.assertionResults.length > 0;
    const code = await readFile(join(folder, spec), 'utf8');
    for (const [promise, use] of PROVEN_BY_USE) {
      if (!use.test(code)) continue;
      checks.record(
        `${promise} ${name}: ${spec} of the guide passes`,
        passed ? undefined : result?.message || output.slice(-4000),
      );
    }
  }
}

/** Installs the packages and writes the code of the guide. Returns the names of the written files. */
async function install(
  { type, dependencies, compilerOptions }: Runner,
  folder: string,
  { root, payments, emulator }: SmokeContext,
): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const ours = [payments, emulator].map(({ manifest, tarball }) => [
    manifest.name,
    `file:${tarball}`,
  ]);
  const all = { ...dependencies, ...(Object.fromEntries(ours) as Record<string, string>) };
  await writeJson(join(folder, 'package.json'), { private: true, type, dependencies: all });
  const types = ['node', 'jest' in all ? 'jest' : 'vitest/globals'];
  const config = { compilerOptions: { ...compilerOptions, types, skipLibCheck: true } };
  await writeJson(join(folder, 'tsconfig.json'), config);
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--prefer-offline'];
  await npm(['install', '--ignore-scripts', ...quiet], folder);
  return writeDocumentedCode(join(root, 'docs/testing.md'), folder);
}

interface SpecResult {
  readonly name: string;
  readonly status: string;
  readonly message?: string;
  readonly assertionResults: readonly unknown[];
}

/** Reads the JSON report, which has the same format for Jest and Vitest. */
function resultsOf(stdout: string): readonly SpecResult[] {
  try {
    return (JSON.parse(stdout) as { testResults: SpecResult[] }).testResults;
  } catch {
    return [];
  }
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, JSON.stringify(value, null, 2));
}
