import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { ReadyCase } from 'nestjs-payments/testing';
import { ReadmeProgram } from '../support/docs/readme-program.js';

const MY_INBOX = `
import { memoryInbox } from 'nestjs-payments';
export const myInbox = () => memoryInbox({ maxEvents: 100_000 });
`;

describe('docs/inbox-stores.md', () => {
  let program: ReadmeProgram;
  beforeAll(() => {
    program = new ReadmeProgram('docs/inbox-stores.md', { 'my-inbox.ts': MY_INBOX });
  }, 60_000);
  afterAll(() => program.remove());

  it('IN-01 the example in docs/inbox-stores.md runs the contract suite on a store', async () => {
    expect(program.files).toEqual(['contract.ts']);
    expect(program.complaints).toEqual([]);
    const url = pathToFileURL(join(program.folder, 'contract.js')).href;
    const { cases } = (await import(url)) as { cases: readonly ReadyCase[] };
    const run = cases.filter(({ skipped }) => skipped === null);
    expect(run.length).toBeGreaterThan(100);
    for (const one of run.filter(({ title }) => /^IN-(01|12|36) /.test(title))) await one.run();
  });
});
