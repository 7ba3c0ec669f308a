import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from '@jest/globals';
import { startProgram } from '../processes/start-program.js';

const CHAOS = 'test/chaos/dist/main.js';

/** The part of a result on one store that the tests read. */
export interface ChaosResult {
  store: string;
  ok: boolean;
  counts: {
    acknowledged: number;
    effects: number;
    processes: number;
    payments: { paid: number; byPoll: number; byWebhook: number };
  };
  faults: Record<string, number>;
  plan: unknown[];
  violations: { rule: string; detail: string }[];
  journals: string | null;
}

/** Functions that run `npm run chaos` in a temporary folder, and that read its result. */
export function useChaosRuns() {
  let folder: string;
  let kept: string[] = [];
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'payments-chaos-spec-'));
  });
  afterEach(() => {
    for (const made of [folder, ...kept]) rmSync(made, { recursive: true, force: true });
    kept = [];
  });
  return {
    /** Runs `npm run chaos` until it ends. */
    chaos: async (settings: Record<string, string>, ...args: string[]) => {
      const json = join(folder, 'result.json');
      await using run = startProgram(CHAOS, settings, ['--seed', 'spec', '--json', json, ...args]);
      const { code } = await run.ended;
      return { code, err: run.err, last: run.out.at(-1), json };
    },
    read: (json: string): ChaosResult[] => {
      const results = JSON.parse(readFileSync(json, 'utf8')) as ChaosResult[];
      kept.push(...results.flatMap(({ journals }) => journals ?? []));
      return results;
    },
  };
}
