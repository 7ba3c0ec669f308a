import { Logger } from '@nestjs/common';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { startPostgres } from 'test-postgres';
import type { PostgresServer } from 'test-postgres';
import { playInPostgres, playInSqlite, REAL } from './play-durable.ts';
import { scenarios } from './scenario.ts';
import type { Scenario } from './scenario.ts';

/** The number of scenarios that run at the same time, each on a database of its own. */
const SCENARIOS = 4;

beforeAll(() => Logger.overrideLogger(false));

/** Plays random scenarios. Returns the first violations, with the seed that repeats the scenario. */
async function wrongs(
  store: string,
  play: (scenario: Scenario) => Promise<string[]>,
): Promise<string[]> {
  const drawn = fc.sample(scenarios({ ...REAL, maxSteps: 12 }), { numRuns: SCENARIOS, seed: 1 });
  const found = await Promise.all(drawn.map((scenario) => play(scenario)));
  return found.flatMap((wrong, index) =>
    wrong.map((one) => `${one}\non ${store}: ${JSON.stringify(drawn[index])}`),
  );
}

describe('the inbox, with simulated faults in real time', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.end(), 60_000);

  it('on SQLite, all deliveries of every acknowledged event reach a final state, and each effect exists once', async () => {
    expect(await wrongs('SQLite', playInSqlite)).toEqual([]);
  });

  it('on PostgreSQL, all deliveries of every acknowledged event reach a final state, and each effect exists once', async () => {
    const play = async (scenario: Scenario) =>
      playInPostgres(scenario, await server.createDatabase());
    expect(await wrongs('PostgreSQL', play)).toEqual([]);
  });
});
