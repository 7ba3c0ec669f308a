import { describe, expect, it } from '@jest/globals';
import { SigningKey } from '../companies/company.js';
import { ProcessFacts } from './process-facts.js';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Facts with a clock that starts at a full minute. */
function start() {
  const clock = { nowMs: 1000 * MINUTE_MS };
  return { clock, facts: new ProcessFacts({ now: () => clock.nowMs }) };
}

const mismatch = {
  company: 'acme',
  code: 'signature_mismatch',
  message: 'Check the secret.',
} as const;

const keysOf = (...secrets: string[]) => secrets.map((secret) => new SigningKey(secret));

describe('ProcessFacts', () => {
  it('OP-20 ProcessFacts counts accepted and rejected requests per company, code and minute of the last hour', () => {
    const { clock, facts } = start();
    facts.accepted('acme');
    facts.accepted('acme');
    clock.nowMs += 2 * MINUTE_MS;
    facts.accepted('acme');
    facts.rejected(mismatch);
    facts.rejected({ ...mismatch, company: null, code: 'company_unknown' });
    const counts = { company: 'acme', fromMs: 1000 * MINUTE_MS, lastAtMs: 1002 * MINUTE_MS };
    const { requests } = facts.snapshot();
    expect(requests).toEqual([
      { ...counts, code: null, message: null, perMinute: [2, 0, 1] },
      {
        ...counts,
        fromMs: 1002 * MINUTE_MS,
        code: 'signature_mismatch',
        message: 'Check the secret.',
        perMinute: [1],
      },
      expect.objectContaining({ company: null, code: 'company_unknown', perMinute: [1] }),
    ]);
    clock.nowMs += 59 * MINUTE_MS;
    expect(facts.snapshot().requests[0]).toMatchObject({ perMinute: [0, 1] });
    clock.nowMs += HOUR_MS;
    expect(facts.snapshot().requests).toEqual([]);
  });

  it('OP-20 ProcessFacts counts in the right minute after hours without a request, and after the clock was set back', () => {
    const { clock, facts } = start();
    facts.accepted('acme');
    clock.nowMs += 30 * HOUR_MS;
    facts.accepted('acme');
    clock.nowMs -= 5 * MINUTE_MS;
    facts.accepted('acme');
    clock.nowMs += 5 * MINUTE_MS;
    expect(facts.snapshot().requests).toMatchObject([{ fromMs: clock.nowMs, perMinute: [2] }]);
  });

  it('OP-20 ProcessFacts counts the rejections since the newest accepted request', () => {
    const { clock, facts } = start();
    const sinceMs = clock.nowMs;
    facts.rejected(mismatch);
    clock.nowMs += 1000;
    facts.rejected(mismatch);
    expect(facts.snapshot().rejectedInARow).toEqual({ count: 2, sinceMs });
    facts.accepted('umbrella');
    expect(facts.snapshot().rejectedInARow).toBeNull();
  });

  it('OP-21 ProcessFacts records when each secret of a company last verified a request, and contains no secret', () => {
    const { clock, facts } = start();
    const keys = keysOf('whsec_current', 'whsec_previous');
    facts.configured('acme', keys);
    const [fresh] = facts.snapshot().companies;
    expect(fresh!.secrets.map(({ verifiedAtMs }) => verifiedAtMs)).toEqual([null, null]);
    facts.verified('acme', keys, 1);
    clock.nowMs += 1000;
    facts.verified('acme', keys, 0);
    const { secrets } = facts.snapshot().companies[0]!;
    expect(secrets.map(({ verifiedAtMs }) => verifiedAtMs)).toEqual([
      clock.nowMs,
      clock.nowMs - 1000,
    ]);
    expect(secrets.map(({ id }) => id)).toEqual([
      expect.stringMatching(/^[0-9a-f]{4}$/),
      expect.stringMatching(/^[0-9a-f]{4}$/),
    ]);
    expect(JSON.stringify(facts.snapshot())).not.toContain('whsec');
  });

  it('OP-21 the time when a secret last verified a request remains if another secret becomes the current one, and if another process reads the time', () => {
    const { clock, facts: old } = start();
    old.verified('acme', keysOf('whsec_1'), 0);
    const usedMs = clock.nowMs;
    clock.nowMs += HOUR_MS;
    const next = new ProcessFacts({ now: () => clock.nowMs });
    next.configured('acme', keysOf('whsec_2', 'whsec_1'));
    next.inherit([old.snapshot()]);
    const { companies, secretsSinceMs } = next.snapshot();
    expect(companies[0]!.secrets.map(({ verifiedAtMs }) => verifiedAtMs)).toEqual([null, usedMs]);
    expect(secretsSinceMs).toBe(usedMs);
  });

  it('OP-20 ProcessFacts records the newest token request, the newest failed call and the times of the newest calls', () => {
    const { clock, facts } = start();
    const call = { company: 'acme', errorCode: null, status: 200 };
    facts.tokenFetched({ company: 'acme', errorCode: 'invalid_credentials' });
    for (let ms = 1; ms <= 25; ms += 1) facts.apiCallEnded({ ...call, durationMs: ms });
    facts.apiCallEnded({ ...call, errorCode: 'server_error', status: 503, durationMs: 7.6 });
    expect(facts.snapshot().companies).toEqual([
      {
        company: 'acme',
        secrets: [],
        token: { atMs: clock.nowMs, errorCode: 'invalid_credentials' },
        lastError: { atMs: clock.nowMs, errorCode: 'server_error', status: 503 },
        calls: 26,
        failedCalls: 1,
        callsMs: [...Array.from({ length: 19 }, (_, index) => index + 7), 8],
      },
    ]);
  });

  it('OP-20 a report of ProcessFacts is at most 64 KiB long, for any number of companies and rejections', () => {
    const { clock, facts } = start();
    const codes = ['signature_mismatch', 'payload_invalid', 'inbox_unavailable'] as const;
    for (let minute = 0; minute < 61; minute += 1) {
      for (let n = 0; n < 100; n += 1) {
        const company = `${n}-`.padEnd(100, 'x');
        for (let repeat = 0; repeat < 10; repeat += 1) facts.accepted(company);
        for (const code of codes) facts.rejected({ company, code, message: 'x'.repeat(2000) });
        facts.verified(company, keysOf('a', 'b', 'c'), 1);
        facts.tokenFetched({ company, errorCode: 'token_unavailable' });
        facts.apiCallEnded({ company, errorCode: 'server_error', status: 503, durationMs: 12_345 });
      }
      clock.nowMs += MINUTE_MS;
    }
    const snapshot = facts.snapshot();
    expect(snapshot.companies).toHaveLength(40);
    const total = snapshot.requests
      .filter(({ code }) => code === null)
      .reduce((sum, { perMinute }) => sum + perMinute.reduce((a, b) => a + b, 0), 0);
    expect(total).toBe(60 * 1000);
    expect(Buffer.byteLength(JSON.stringify(snapshot))).toBeLessThan(64 * 1024 - 8000);
  });
});
