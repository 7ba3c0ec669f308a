import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { killedAfter, SqliteHarness, startChild } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

describe('a SQLite inbox that is killed', () => {
  it('IN-09 a SQLite inbox has stored every event that it acknowledged, even after its processes were killed 10 times', async () => {
    const acknowledged: string[] = [];
    for (let round = 0; round < 10; round += 2) {
      // Two processes at a time use one file. Each process is killed while the other writes, checkpoints or recovers.
      await Promise.all(
        [0, 13].map(async (more) => {
          const child = startChild('receive', harness.file);
          acknowledged.push(...(await killedAfter(child, 1 + ((round * 7 + more) % 40))));
        }),
      );
    }
    const connection = harness.connect();
    const stored = connection.prepare('SELECT id FROM payments_inbox_event').all();
    const ids = new Set(Array.from(stored, ({ id }) => String(id)));
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
    expect(connection.prepare('PRAGMA integrity_check').get()).toMatchObject({
      integrity_check: 'ok',
    });
    // Each stored event has a pending delivery.
    const store = await harness.open();
    const { deliveries } = await store.stats();
    expect(deliveries).toMatchObject([{ handler: 'book', state: 'pending', count: ids.size }]);
  }, 360_000);

  it('IN-22 a SQLite inbox has one effect for each done delivery after its processes were killed, and no other effects', async () => {
    await (await harness.open()).close();
    const connection = harness.connect();
    connection.exec('CREATE TABLE ledger (id TEXT NOT NULL)');
    const committed: string[] = [];
    for (let round = 0; round < 5; round += 1) {
      const child = startChild('commit', harness.file);
      committed.push(...(await killedAfter(child, 1 + ((round * 5) % 17))));
    }
    const column = (sql: string) =>
      Array.from(connection.prepare(sql).all(), ({ id }) => String(id));
    const effects = column('SELECT id FROM ledger ORDER BY id');
    const done = column(
      `SELECT e.id FROM payments_inbox_delivery d JOIN payments_inbox_event e ON e.seq = d.event
       WHERE d.state = 'done' ORDER BY e.id`,
    );
    expect(effects).toEqual(done);
    expect(new Set(effects).size).toBe(effects.length);
    expect(committed.filter((id) => !effects.includes(id))).toEqual([]);
  }, 120_000);
});
