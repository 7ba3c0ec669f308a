import { readFile } from 'node:fs/promises';
import { describe, expect, it } from '@jest/globals';
import { REFUSAL_STATUS } from './webhook-answer.js';

/** Status by code, as the table in `docs/security.md` has them. */
async function documentedStatus(): Promise<Record<string, string>> {
  const page = await readFile(new URL('../../../../docs/security.md', import.meta.url), 'utf8');
  const table = page.split('\n## Refusals\n')[1]!.split('\n## ')[0]!;
  const rows = table.matchAll(/^\| `(?<code>\w+)` +\| (?<status>\S+) /gm);
  return Object.fromEntries(Array.from(rows, ({ groups }) => [groups!['code'], groups!['status']]));
}

describe('REFUSAL_STATUS', () => {
  it('WH-30 has the codes and statuses that docs/security.md documents', async () => {
    const statuses = Object.entries(REFUSAL_STATUS).map(([code, status]) => [code, `${status}`]);
    expect(await documentedStatus()).toEqual({
      ...Object.fromEntries(statuses),
      request_rejected: '400–599',
    });
  });
});
