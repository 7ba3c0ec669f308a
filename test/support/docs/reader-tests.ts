import { fileURLToPath } from 'node:url';
import { RunningProcess } from '../processes/running-process.ts';
import type { ReadmeProgram } from './readme-program.js';

const JEST = fileURLToPath(new URL('../../../node_modules/jest/bin/jest.js', import.meta.url));

/** Runs the tests of a page in a Jest of their own, and returns its output and exit code. */
export async function runReaderTests(
  program: ReadmeProgram,
  options: { readonly setupFiles?: readonly string[] } = {},
): Promise<{ output: string; code: number | null }> {
  const config = {
    ...options,
    rootDir: program.folder,
    testMatch: ['**/*.spec.js'],
    transform: {},
    // Longer than the default of Jest, because the machine may be busy.
    testTimeout: 60_000,
    // Jest ignores node_modules by default, and the folder is inside it.
    haste: { retainAllFiles: true },
    testPathIgnorePatterns: [],
  };
  const args = [
    '--experimental-vm-modules',
    JEST,
    '--config',
    JSON.stringify(config),
    '--runInBand',
  ];
  await using jest = new RunningProcess(process.execPath, args, { env: process.env });
  const { code } = await jest.ended;
  return { output: jest.stderr, code };
}
