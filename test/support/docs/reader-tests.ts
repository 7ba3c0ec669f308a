import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { ReadmeProgram } from './readme-program.js';

const JEST = fileURLToPath(new URL('../../../node_modules/jest/bin/jest.js', import.meta.url));

/** Runs the tests of a page in a Jest of their own, and returns its output and exit code. */
export async function runReaderTests(
  program: ReadmeProgram,
  options: { readonly setupFiles?: readonly string[] } = {},
): Promise<{ output: string; code: number }> {
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
  const child = spawn(
    process.execPath,
    ['--experimental-vm-modules', JEST, '--config', JSON.stringify(config), '--runInBand'],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const [output, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { output, code: code as number };
}
