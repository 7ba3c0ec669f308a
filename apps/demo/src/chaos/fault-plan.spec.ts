import { describe, expect, it } from '@jest/globals';
import { planFaults } from './fault-plan.js';
import { SeededRandom } from './seeded-random.js';

const RUN = { store: 'postgres', seconds: 8, processes: 3, leaseMs: 1000 } as const;
const plan = (seed: string, run: Parameters<typeof planFaults>[1] = RUN) =>
  planFaults(new SeededRandom(seed, 'faults'), run);

describe('planFaults()', () => {
  it('depends only on the seed', () => {
    expect(plan('a')).toEqual(plan('a'));
    expect(plan('a')).not.toEqual(plan('b'));
  });

  it('has one deploy in the middle, and faults in order of time within the run', () => {
    for (const seed of ['a', 'b', 'c']) {
      const faults = plan(seed, { ...RUN, seconds: 60 });
      const [deploy, ...more] = faults.filter(({ kind }) => kind === 'deploy');
      expect(more).toEqual([]);
      expect(deploy!.atMs).toBeGreaterThanOrEqual(21_000);
      expect(deploy!.atMs).toBeLessThan(33_000);
      const times = faults.map(({ atMs }) => atMs);
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(times.at(-1)).toBeLessThan(60_000);
      // All kinds that PostgreSQL has, and the deploy.
      expect(new Set(faults.map(({ kind }) => kind)).size).toBe(11);
    }
  });

  it('plans no fault of a server for SQLite', () => {
    const kinds = new Set(plan('a', { ...RUN, store: 'sqlite', seconds: 60 }).map((f) => f.kind));
    expect([...kinds].toSorted()).toEqual(['block', 'clock', 'deploy', 'drain', 'kill', 'stop']);
  });

  it('stops and blocks a process for longer than its lease', () => {
    const amounts = plan('a', { ...RUN, seconds: 60 }).flatMap(({ kind, amount }) =>
      kind === 'stop' || kind === 'block' ? [amount] : [],
    );
    expect(Math.min(...amounts)).toBeGreaterThan(RUN.leaseMs);
  });
});
