import { fileURLToPath } from 'node:url';
import { describe, expect, it } from '@jest/globals';
import { useChaosRuns } from '../support/chaos/run-chaos.js';
import { ENGINES } from '../support/engines/engine-server.js';

/** The time for a run with an engine: it starts six processes and three databases. */
const ENGINE_MS = 900_000;
const MUTANT = fileURLToPath(new URL('../chaos/mutant-engine.mjs', import.meta.url));

describe('npm run chaos with an engine', () => {
  const { chaos, read } = useChaosRuns();

  const withEngine = (engine: keyof typeof ENGINES) => ({
    itIf: ENGINES[engine].isInstalled() ? it : it.skip,
    flags: ['--engine', engine, '--seconds', '5', '--rate', '10'],
  });

  for (const engine of ['jetstream', 'bullmq', 'rabbitmq'] as const) {
    const { itIf, flags } = withEngine(engine);
    itIf(
      `EN-12 npm run chaos --engine ${engine} finds no broken promise in a gateway and two services, and exits with 0`,
      async () => {
        const { code, err, last, json } = await chaos({}, ...flags);
        const results = read(json);
        const expected = ['gateway', 'ledger', 'mail'].map((name) => [name, []]);
        expect(results.map(({ store, violations }) => [store, violations])).toEqual(expected);
        const ok = `chaos: no promise was broken (seed spec, ${engine})`;
        expect([code, err, last]).toEqual([0, [], ok]);
        const faults = results.flatMap((result) => Object.keys(result.faults));
        expect(faults.filter((kind) => kind.startsWith('engine-')).length).toBeGreaterThan(0);
        const [gateway, ledger, mail] = results.map(({ counts }) => counts);
        expect(gateway!.acknowledged).toBeGreaterThan(20);
        expect(ledger!.effects).toBeGreaterThan(gateway!.acknowledged);
        expect(mail!.effects).toBe(ledger!.effects);
      },
      ENGINE_MS,
    );
  }

  const bullmq = withEngine('bullmq');
  bullmq.itIf(
    'EN-12 npm run chaos --engine exits with 1 if the services acknowledge messages before they store their events',
    async () => {
      const { code, json } = await chaos({}, ...bullmq.flags, '--application', MUTANT);
      const results = read(json);
      const broken = results.filter(({ violations }) =>
        violations.some(({ rule, detail }) => rule === 'lost' && detail.endsWith('in the inbox')),
      );
      expect(broken.map(({ store }) => store)).not.toEqual([]);
      expect(broken.map(({ store }) => store)).not.toContain('gateway');
      expect(code).toBe(1);
    },
    ENGINE_MS,
  );
});
