import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../support/processes/run-command.ts';
import type { Mutant } from './mutant.ts';

/** Result of the tests of some promises. */
export interface PromiseCheck {
  readonly passed: number;
  /** Names of the tests that failed. */
  readonly failed: readonly string[];
  /** Message of specs that did not run: a syntax error, a missing import. */
  readonly broken: string | undefined;
}

interface JestReport {
  readonly testResults: readonly {
    readonly message: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
}

const JEST = [
  '--experimental-vm-modules',
  '--disable-warning=ExperimentalWarning',
  'node_modules/jest/bin/jest.js',
];
const PROJECTS = [
  'libs/payments',
  'libs/console',
  'libs/emulator',
  'libs/jetstream',
  'libs/bullmq',
  'libs/rabbitmq',
  'libs/kafka',
  'apps/shop',
  'apps/demo',
];

/** Compiles the packages in `root`. The compiler emits code even if a mutant breaks a type. */
export async function build(root: string): Promise<void> {
  await run('node', ['node_modules/typescript/bin/tsc', '-b', ...PROJECTS], { cwd: root });
}

/** Runs the tests of the mutants' promises in the mutants' specs and parts of the smoke test. */
export async function checkPromises(
  root: string,
  mutants: readonly Mutant[],
): Promise<PromiseCheck> {
  const ids = unique(mutants.map(({ promise }) => promise));
  const checks: PromiseCheck[] = [];
  const specs = unique(mutants.flatMap((mutant) => mutant.specs));
  if (specs.length > 0) checks.push(await runSpecs(root, specs, ids));
  for (const part of unique(mutants.flatMap(({ smoke }) => smoke ?? []))) {
    checks.push(await runSmoke(root, part, ids));
  }
  return {
    passed: checks.reduce((sum, { passed }) => sum + passed, 0),
    failed: checks.flatMap(({ failed }) => failed),
    broken: checks.find(({ broken }) => broken !== undefined)?.broken,
  };
}

async function runSpecs(root: string, specs: string[], ids: string[]): Promise<PromiseCheck> {
  const report = join(root, 'mutate.json');
  await rm(report, { force: true });
  const pattern = `\\b(${ids.join('|')})\\b`;
  // A test that fails may leave a server open, and Jest would wait for it.
  const flags = ['--forceExit', '--json', `--outputFile=${report}`, '--testNamePattern', pattern];
  const { output } = await run('node', [...JEST, ...flags, '--runTestsByPath', ...specs], {
    cwd: root,
    timeoutMs: 1_800_000,
  });
  const text = await readFile(report, 'utf8').catch(() => undefined);
  if (text === undefined) return { passed: 0, failed: [], broken: output.slice(-2000) };
  const { testResults } = JSON.parse(text) as JestReport;
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  return {
    passed: tests.filter(({ status }) => status === 'passed').length,
    failed: tests.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
    broken: testResults.find(({ assertionResults }) => assertionResults.length === 0)?.message,
  };
}

async function runSmoke(root: string, part: string, ids: string[]): Promise<PromiseCheck> {
  const { output } = await run('node', ['test/smoke/smoke.ts', part], {
    cwd: root,
    timeoutMs: 1_800_000,
  });
  const lines = output.split('\n').filter((line) => ids.some((id) => line.includes(` ${id} `)));
  const passed = lines.filter((line) => line.startsWith('ok '));
  const failed = lines.filter((line) => line.startsWith('FAIL '));
  return {
    passed: passed.length,
    failed,
    broken: passed.length + failed.length === 0 ? output.slice(-2000) : undefined,
  };
}

function unique(values: readonly string[]): string[] {
  return [...new Set(values)];
}
