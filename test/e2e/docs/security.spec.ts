import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AdmissionCheck, AdmissionRequest } from 'nestjs-payments';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

describe('docs/security.md', () => {
  let program: ReadmeProgram;
  beforeAll(() => void (program = new ReadmeProgram('docs/security.md')), 60_000);
  afterAll(() => program.remove());

  it('SE-05 docs/security.md shows an allowlist with a rate limit that rejects requests', async () => {
    const url = pathToFileURL(join(program.folder, 'webhook-check.js')).href;
    const { before } = (await import(url)) as { before: AdmissionCheck };
    const from = (address: string) => before({ address } as AdmissionRequest);
    expect(from('198.51.100.1')).toEqual({ status: 403 });
    expect(from('::ffff:203.0.113.7')).toBeUndefined();
    // More requests than two seconds allow, so that the limit applies even if a new second begins meanwhile.
    const results = Array.from({ length: 5000 }, () => from('203.0.113.7'));
    expect(results[0]).toBeUndefined();
    expect(results).toContainEqual({ status: 429, retryAfterSeconds: 1 });
  });
});
