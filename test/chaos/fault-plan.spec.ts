import { describe, expect, it } from '@jest/globals';
import { planFaults } from './fault-plan.js';
import { SeededRandom } from './seeded-random.js';

const RUN = { store: 'postgres', seconds: 8, processes: 3, leaseMs: 1000 } as const;
const plan = (seed: string, run: Parameters<typeof planFaults>[1] = RUN) =>
  planFaults(new SeededRandom(seed, 'faults'), run);

describe('planFaults()', () => {
  it('planFaults() plans the same faults for the same seed, and other faults for another seed', () => {
    expect(plan('a')).toEqual(plan('a'));
    expect(plan('a')).not.toEqual(plan('b'));
  });

  it('planFaults() plans one deploy in the middle of the run, and all kinds of faults in order of time', () => {
    for (const seed of ['a', 'b', 'c']) {
      const faults = plan(seed, { ...RUN, seconds: 60 });
      const [deploy, ...more] = faults.filter(({ kind }) => kind === 'deploy');
      expect(more).toEqual([]);
      expect(deploy!.atMs).toBeGreaterThanOrEqual(21_000);
      expect(deploy!.atMs).toBeLessThan(33_000);
      const times = faults.map(({ atMs }) => atMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(times.at(-1)).toBeLessThan(60_000);
      // The ten kinds on PostgreSQL, and the deploy.
      expect(new Set(faults.map(({ kind }) => kind)).size).toBe(11);
    }
  });

  it('planFaults() plans no PostgreSQL fault for SQLite', () => {
    const kinds = new Set(plan('a', { ...RUN, store: 'sqlite', seconds: 60 }).map((f) => f.kind));
    expect([...kinds].toSorted()).toEqual(['block', 'clock', 'deploy', 'drain', 'kill', 'stop']);
  });

  it('EN-12 planFaults() plans every fault of the processes, their databases and the engine, and no deploy', () => {
    const run = { store: 'engine', seconds: 20, processes: 6, leaseMs: 1000 } as const;
    const faults = plan('a', run);
    expect(new Set(faults.map(({ kind }) => kind)).size).toBe(16);
    expect(faults.map(({ kind }) => kind)).not.toContain('deploy');
    expect(new Set(faults.map(({ target }) => target)).size).toBe(6);
  });
});
