import { describe, it } from '@jest/globals';
import { inboxContract } from './inbox-contract.ts';
import type { SqliteTransaction } from 'nestjs-payments/sqlite';
import { SqliteHarness } from '../support/sqlite/sqlite-harness.ts';

describe('the contract, on SQLite', () => {
  const cases = inboxContract({
    capabilities: { durable: true, shared: true, transactional: true, ownClock: false },
    breakable: true,
    start: async () => {
      const harness = new SqliteHarness();
      // Long enough for concurrent connections on a slow disk, short enough for the case in which the database is down.
      const store = await harness.open({ busyTimeoutMs: 4000 });
      const application = harness.connect();
      application.exec('CREATE TABLE effect (name TEXT NOT NULL)');
      return {
        store,
        another: ({ clockOffsetMs } = {}) => harness.open({}, clockOffsetMs),
        advance: async (ms) => harness.advance(ms),
        jumpWallClock: (ms) => harness.jumpWallClock(ms),
        effects: {
          write: (tx, effect) => {
            (tx as SqliteTransaction).prepare('INSERT INTO effect VALUES (?)').run(effect);
          },
          read: async () =>
            Array.from(application.prepare('SELECT name FROM effect').all(), ({ name }) =>
              String(name),
            ),
        },
        // This transaction blocks all other writers.
        breakDown: async () => application.exec('BEGIN IMMEDIATE'),
        dispose: () => harness.dispose(),
      };
    },
  });
  for (const { title, skipped, run } of cases) (skipped === null ? it : it.skip)(title, run);
});
