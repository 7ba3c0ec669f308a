import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PAGE_CONTEXT } from '../../support/docs/page-context.js';
import { runReaderTests } from '../../support/docs/reader-tests.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

describe('docs/testing.md', () => {
  let program: ReadmeProgram;

  beforeAll(() => {
    program = new ReadmeProgram('docs/testing.md', PAGE_CONTEXT['docs/testing.md']);
  });
  afterAll(() => program.remove());

  it('AP-14 docs/testing.md shows tests that pass', async () => {
    const setupFiles = ['<rootDir>/test-settings.js'];
    const { output, code } = await runReaderTests(program, { setupFiles });
    expect(output).toContain('10 passed, 10 total');
    expect(code).toBe(0);
  }, 180_000);
});
