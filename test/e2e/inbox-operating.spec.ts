import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { ReadmeProgram } from '../support/docs/readme-program.js';

describe('docs/operating.md', () => {
  let program: ReadmeProgram;
  beforeAll(() => {
    program = new ReadmeProgram('docs/operating.md');
  }, 60_000);
  afterAll(() => program.remove());

  it('the code in docs/operating.md compiles with strict type checks', () => {
    expect(program.files).toEqual([
      'app.module.ts',
      'orders.ts',
      'inbox.operator.ts',
      'metrics.controller.ts',
      'stale-events.ts',
    ]);
    expect(program.complaints).toEqual([]);
  });
});
