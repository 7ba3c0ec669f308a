import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ProgramProcess } from '../support/processes/program-process.js';

jest.setTimeout(300_000);

const CHAOS = 'apps/demo/dist/chaos/main.js';
const MUTANT = fileURLToPath(new URL('../support/inbox/chaos-mutant.mjs', import.meta.url));

/** What the tests read of the result of a run on one store. */
interface Result {
  store: string;
  ok: boolean;
  counts: { acknowledged: number; effects: number; processes: number };
  faults: Record<string, number>;
  plan: unknown[];
  violations: { rule: string; detail: string }[];
  journals: string | null;
}

let folder: string;
let kept: string[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'payments-chaos-spec-'));
});
afterEach(() => {
  for (const made of [folder, ...kept]) rmSync(made, { recursive: true, force: true });
  kept = [];
});

/** Runs it to its end. */
async function chaos(settings: Record<string, string>, ...args: string[]) {
  const json = join(folder, 'result.json');
  await using run = new ProgramProcess(CHAOS, settings, [
    '--seed',
    'spec',
    '--json',
    json,
    ...args,
  ]);
  const { code } = await run.ended;
  return { code, err: run.err, last: run.out.at(-1), json };
}

function read(json: string): Result[] {
  const results = JSON.parse(readFileSync(json, 'utf8')) as Result[];
  kept.push(...results.flatMap(({ journals }) => journals ?? []));
  return results;
}

describe('npm run chaos', () => {
  // `.ci/run` runs it on both stores.
  it('finds no broken promise on PostgreSQL, and ends by itself', async () => {
    const { code, err, last, json } = await chaos({}, '--seconds', '5', '--store', 'postgres');
    expect([code, err, last]).toEqual([
      0,
      [],
      'chaos: no promise was broken (seed spec, postgres)',
    ]);
    const results = read(json);
    expect(results.map(({ store, violations }) => [store, violations])).toEqual([['postgres', []]]);
    for (const { counts, faults, plan } of results) {
      // Another process took over a delivery; the commit of the first one was rejected.
      expect(faults['takeover']).toBe(1);
      expect(counts.acknowledged).toBeGreaterThan(50);
      expect(counts.effects).toBeGreaterThan(counts.acknowledged);
      // More than were started at first.
      expect(counts.processes).toBeGreaterThan(3);
      expect(plan.length).toBeGreaterThan(3);
    }
  });

  it('ends with 1 for an application with five mistakes, and reports each of them', async () => {
    const mistakes = {
      'the effect is outside of the commit': /^doubled: .* for audit: \d effects$/,
      'the answer comes before the event is stored': /^lost: .* in the inbox$/,
      'there are no ordering keys': /^overlap: .* of (hot|transaction)-/,
      'the new handler gets no deliveries': /^lost: .* for points$/,
      'stale holders commit': /^doubled: event-taken-over .* for book: 2 effects$/,
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
    // On a slow machine little happens in that time.
    if (run.unfound.length > 0) run = await found('30');
    expect(run.unfound).toEqual([]);
    expect(run.code).toBe(1);
    expect(run.last).toMatch(/^chaos: BROKEN PROMISES: \d+ \(seed spec, sqlite\)$/);
  });

  it.each([
    [['--seconds', '0'], /^chaos: --seconds must be/],
    [['--store', 'memory'], /^chaos: --store must be one of sqlite, postgres, both$/],
  ])('rejects %j', async (args, message) => {
    const { code, err } = await chaos({}, ...args);
    expect([code, err]).toEqual([1, [expect.stringMatching(message)]]);
  });
});
