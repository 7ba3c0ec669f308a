import { describe, expect, it } from '@jest/globals';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

const GUARDS = ['operators.guard.ts', 'config.guard.ts', 'config-ops.module.ts', 'sso.module.ts'];

describe('documentation of the console', () => {
  it.each([
    ['docs/console.md', ['app.module.ts', ...GUARDS]],
    ['libs/console/README.md', ['app.module.ts']],
  ])('%s has code that compiles under strict', (path, files) => {
    const page = new ReadmeProgram(path);
    page.remove();
    expect(page.files).toEqual(files);
    expect(page.complaints).toEqual([]);
  });
});
