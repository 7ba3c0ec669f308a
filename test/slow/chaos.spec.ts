import { fileURLToPath } from 'node:url';
import { describe, expect, it, jest } from '@jest/globals';
import { useChaosRuns } from '../support/chaos/run-chaos.js';

// On a busy machine, a run of an application with mistakes takes minutes, because its faults end late.
jest.setTimeout(900_000);

const MUTANT = fileURLToPath(new URL('../chaos/mutant-application.mjs', import.meta.url));
const PAYMENT_MUTANT = fileURLToPath(new URL('../chaos/mutant-purchases.mjs', import.meta.url));

describe('npm run chaos', () => {
  const { chaos, read } = useChaosRuns();

  it('npm run chaos finds no broken promise on SQLite and on PostgreSQL, and exits with 0', async () => {
    const { code, err, last, json } = await chaos({}, '--seconds', '5', '--store', 'both');
    const results = read(json);
    expect(results.map(({ store, violations }) => [store, violations])).toEqual([
      ['sqlite', []],
      ['postgres', []],
    ]);
    expect([code, err, last]).toEqual([
      0,
      [],
      'chaos: no promise was broken (seed spec, sqlite and postgres)',
    ]);
    for (const { counts, faults, plan } of results) {
      // Another process took over a delivery, and the store rejected the commit of the first process.
      expect(faults['takeover']).toBe(1);
      expect(counts.acknowledged).toBeGreaterThan(50);
      expect(counts.effects).toBeGreaterThan(counts.acknowledged);
      // Faults ended some of the first three processes.
      expect(counts.processes).toBeGreaterThan(3);
      expect(plan.length).toBeGreaterThan(3);
      // Webhook requests and polls raced.
      expect(counts.payments.byPoll).toBeGreaterThan(0);
      expect(counts.payments.byWebhook).toBeGreaterThan(0);
    }
  });

  it('EX-13 npm run chaos --no-webhooks finds every payment by polls and exits with 0', async () => {
    const args = ['--seconds', '5', '--store', 'sqlite', '--no-webhooks'];
    const { code, err, last, json } = await chaos({}, ...args);
    const [result] = read(json);
    expect([code, err, last]).toEqual([0, [], 'chaos: no promise was broken (seed spec, sqlite)']);
    expect(result).toMatchObject({ violations: [], counts: { acknowledged: 0 } });
    expect(result!.counts.payments.paid).toBeGreaterThan(20);
    expect(result!.counts.payments.byWebhook).toBe(0);
  });

  it('EX-13 npm run chaos --no-webhooks exits with 1 and reports each of three mistakes that an application makes in its purchases', async () => {
    const args = ['--seconds', '5', '--store', 'sqlite', '--no-webhooks'];
    const { code, json } = await chaos({}, ...args, '--application', PAYMENT_MUTANT);
    const rules = new Set(
      read(json).flatMap(({ violations }) => violations.map(({ rule }) => rule)),
    );
    expect(code).toBe(1);
    expect([...rules]).toEqual(
      expect.arrayContaining(['not-expected', 'lost', 'requested-twice', 'declared-failed']),
    );
  });

  it('npm run chaos exits with 1 and reports each of the five mistakes of an application', async () => {
    const mistakes = {
      'the handler writes the effect outside the commit': /^doubled: .* for audit: \d effects$/,
      'the application responds before it stores the event': /^lost: .* in the inbox$/,
      'there are no ordering keys': /^overlapping-attempts: .* of (hot|transaction)-/,
      'the new handler gets no deliveries': /^lost: .* for points$/,
      'a stale attempt can commit': /^doubled: event-taken-over .* for book: 2 effects$/,
    };
    const args = ['--store', 'sqlite', '--application', MUTANT];
    const found = async (seconds: string) => {
      const run = await chaos({}, '--seconds', seconds, ...args);
      const violations = read(run.json).flatMap((result) => result.violations);
      const lines = violations.map(({ rule, detail }) => `${rule}: ${detail}`);
      const unfound = Object.entries(mistakes)
        .filter(([, pattern]) => !lines.some((line) => pattern.test(line)))
        .map(([mistake]) => mistake);
      return { ...run, unfound };
    };
    let run = await found('5');
    // On a slow machine, 5 s are too short to find all mistakes.
    if (run.unfound.length > 0) run = await found('30');
    expect(run.unfound).toEqual([]);
    expect(run.code).toBe(1);
    expect(run.last).toMatch(/^chaos: BROKEN PROMISES: \d+ \(seed spec, sqlite\)$/);
  });

  it.each([
    [['--seconds', '0'], /^chaos: --seconds must be/],
    [['--engine', 'kafka'], /^chaos: --engine must be one of jetstream, bullmq, rabbitmq$/],
    [['--store', 'memory'], /^chaos: --store must be one of sqlite, postgres, both$/],
  ])('npm run chaos rejects the flags %j with exit code 1', async (args, message) => {
    const { code, err } = await chaos({}, ...args);
    expect([code, err]).toEqual([1, [expect.stringMatching(message)]]);
  });
});
