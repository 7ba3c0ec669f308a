import { copyFileSync, statSync, truncateSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { incoming, SqliteHarness } from './sqlite.harness.ts';

let harness: SqliteHarness;
let after: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
  after = new SqliteHarness();
});
afterEach(() => Promise.all([harness.dispose(), after.dispose()]));

const logBytes = () => statSync(`${harness.file}-wal`).size;

/** What a power cut leaves of the inbox where only so much of its log had reached the disk. */
function cutPower(bytes: number): void {
  copyFileSync(harness.file, after.file);
  copyFileSync(`${harness.file}-wal`, `${after.file}-wal`);
  truncateSync(`${after.file}-wal`, bytes);
}

const BOOK = { handlers: ['book'], limit: 10, leaseMs: 60_000 };

describe('a SQLite inbox after a power cut', () => {
  it('has what it acknowledged, and runs again what was claimed a moment before', async () => {
    const store = await harness.open();
    await store.receive([incoming({ id: 'a' }), incoming({ id: 'b' })]);
    const received = logBytes();
    expect(await store.claim(BOOK)).toHaveLength(2);
    cutPower(received);
    const again = await after.open();
    const leases = await again.claim(BOOK);
    // The attempts of which nobody is left are not counted.
    expect(leases.map(({ id, attempt, takenOver }) => [id, attempt, takenOver])).toEqual([
      ['a', 1, false],
      ['b', 1, false],
    ]);
    expect(await again.complete(leases[0]!)).toBe(true);
    await again.commit(leases[1]!, (tx) => tx.exec('CREATE TABLE effect (x)'));
    expect((await again.stats()).deliveries).toEqual([
      { handler: 'book', state: 'done', count: 2 },
    ]);
  });

  it('never has a settlement without the claim before it, wherever the log breaks off', async () => {
    const store = await harness.open();
    await store.receive([incoming({ id: 'a' }), incoming({ id: 'b' })]);
    const received = logBytes();
    const [a, b] = await store.claim(BOOK);
    await Promise.all([
      store.complete(a!),
      store.commit(b!, (tx) => tx.exec('CREATE TABLE effect (x)')),
    ]);
    const settled = logBytes();
    const states = new Set<string>();
    for (let bytes = received; bytes <= settled; bytes += 1030) {
      cutPower(bytes);
      const file = new DatabaseSync(after.file);
      expect(file.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' });
      const rows = file
        .prepare('SELECT state, attempts, token FROM payments_inbox_delivery ORDER BY event_seq')
        .all();
      const effects = file.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'effect'").all();
      file.close();
      for (const { state, attempts, token } of rows) {
        expect([attempts, token]).toEqual(state === 'pending' ? [0, 0] : [1, 1]);
        states.add(String(state));
      }
      expect(effects).toHaveLength(rows[1]!['state'] === 'done' ? 1 : 0);
    }
    expect([...states].toSorted()).toEqual(['done', 'pending', 'running']);
  });
});
