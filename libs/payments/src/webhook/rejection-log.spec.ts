import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';
import { PaymentsError } from '../errors/payments-error.js';
import type { PaymentsRuntime } from '../runtime/payments-runtime.js';
import { RejectionLog } from './rejection-log.js';

describe('RejectionLog', () => {
  let now = 0;
  const runtime = { monotonic: () => now } as PaymentsRuntime;
  const lines: string[] = [];
  const wrong = new PaymentsError('signature_mismatch', 'Check the secret.');

  beforeEach(() => {
    now = 0;
    lines.length = 0;
    jest
      .spyOn(Logger.prototype, 'warn')
      .mockImplementation((line) => void lines.push(String(line)));
  });

  it('logs the first refusal at once, with code, company and fix', () => {
    new RejectionLog(runtime).note(wrong, 'acme');
    expect(lines).toEqual([
      'A delivery of company acme was refused (signature_mismatch). Check the secret.',
    ]);
  });

  it('logs one line per code and minute', () => {
    const log = new RejectionLog(runtime);
    for (let i = 0; i < 1000; i += 1) log.note(wrong);
    log.note(new PaymentsError('payload_invalid', 'No envelope.'));
    expect(lines).toHaveLength(2);
    now = 60_000;
    log.note(wrong);
    expect(lines[2]).toBe(
      'A delivery was refused (signature_mismatch). Check the secret. (999 more since the previous line)',
    );
  });
});
