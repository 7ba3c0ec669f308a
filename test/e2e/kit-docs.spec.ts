import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PAGE_CONTEXT } from '../support/docs/page-context.js';
import { ReadmeProgram } from '../support/docs/readme-program.js';

const JEST = fileURLToPath(new URL('../../node_modules/jest/bin/jest.js', import.meta.url));

describe('docs/testing.md', () => {
  let program: ReadmeProgram;

  beforeAll(() => {
    program = new ReadmeProgram('docs/testing.md', PAGE_CONTEXT['docs/testing.md']);
  }, 60_000);
  afterAll(() => program.remove());

  it('AP-14 docs/testing.md shows code that compiles with strict', () => {
    expect(program.complaints).toEqual([]);
    expect(program.files).toHaveLength(11);
  });

  it('AP-14 docs/testing.md shows tests that pass', async () => {
    const config = {
      rootDir: program.folder,
      testMatch: ['**/*.spec.js'],
      setupFiles: ['<rootDir>/test-settings.js'],
      transform: {},
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
    expect(output).toContain('10 passed, 10 total');
    expect(code).toBe(0);
  }, 180_000);
});
