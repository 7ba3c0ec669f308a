import { describe, expect, it } from '@jest/globals';
import { ReadmeProgram } from '../support/readme.program.js';

describe('docs/console.md', () => {
  it('shows code that compiles under strict', () => {
    const page = new ReadmeProgram('docs/console.md');
    page.remove();
    expect(page.files).toEqual([
      'app.module.ts',
      'operators.guard.ts',
      'config.guard.ts',
      'sso.module.ts',
    ]);
    expect(page.complaints).toEqual([]);
  }, 60_000);
});
