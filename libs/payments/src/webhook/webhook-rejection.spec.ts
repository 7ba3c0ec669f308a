import { readFile } from 'node:fs/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { REJECTION_STATUS, RejectionLog } from './webhook-rejection.js';

/** Status by code, from the table in `docs/security.md`. */
async function documentedStatus(): Promise<Record<string, string>> {
  const page = await readFile(new URL('../../../../docs/security.md', import.meta.url), 'utf8');
  const table = page.split('\n## Rejections\n')[1]!.split('\n## ')[0]!;
  const rows = table.matchAll(/^\| `(?<code>\w+)` +\| (?<status>\S+) /gm);
  return Object.fromEntries(Array.from(rows, ({ groups }) => [groups!['code'], groups!['status']]));
}

describe('REJECTION_STATUS', () => {
  it('WH-30 REJECTION_STATUS has the same codes and statuses as docs/security.md', async () => {
    const statuses = Object.entries(REJECTION_STATUS).map(([code, status]) => [code, `${status}`]);
    expect(await documentedStatus()).toEqual({
      ...Object.fromEntries(statuses),
      request_rejected: '400–599',
    });
  });
});

describe('RejectionLog', () => {
  let now = 0;
  const runtime = { monotonic: () => now, schedule: () => () => {} } as unknown as PaymentsRuntime;
  const lines: string[] = [];
  const wrong = new PaymentsError('signature_mismatch', 'Check the secret.');

  beforeEach(() => {
    now = 0;
    lines.length = 0;
    jest
      .spyOn(Logger.prototype, 'warn')
      .mockImplementation((line) => void lines.push(String(line)));
  });

  it('RejectionLog logs the first rejection at once, with code, company and fix', () => {
    new RejectionLog(runtime).logRejection(wrong, 'acme');
    expect(lines).toEqual([
      'A webhook request of company acme was rejected (signature_mismatch). Check the secret.',
    ]);
  });

  it('RejectionLog logs at most one line per code and minute, with the number of suppressed lines', () => {
    const log = new RejectionLog(runtime);
    for (let i = 0; i < 1000; i += 1) log.logRejection(wrong);
    log.logRejection(new PaymentsError('payload_invalid', 'No envelope.'));
    expect(lines).toHaveLength(2);
    now = 60_000;
    log.logRejection(wrong);
    expect(lines[2]).toBe(
      'A webhook request was rejected (signature_mismatch). Check the secret. (999 more since the previous line)',
    );
  });
});
