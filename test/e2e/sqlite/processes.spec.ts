import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { incoming, SqliteHarness, startChild } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

describe('several processes on one SQLite file', () => {
  it('IN-11 IN-16 processes on one SQLite file run each delivery once, and run the deliveries of one ordering key one at a time', async () => {
    const store = await harness.open();
    const events = Array.from({ length: 120 }, (_, index) =>
      incoming({ orderingKey: `key-${index % 5}` }),
    );
    await store.receive(events);
    const children = [startChild('work', harness.file), startChild('work', harness.file)];
    const ends = await Promise.all(children.map(({ ended }) => ended));
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    const reported = children.flatMap(({ out }) => out);
    const began = reported.filter((line) => line.startsWith('began '));
    expect(began).toHaveLength(120);
    expect(new Set(began).size).toBe(120);
    expect(reported.filter((line) => line.startsWith('lost '))).toEqual([]);
    expect((await store.stats()).deliveries).toEqual([]);
  });

  it('several processes on one SQLite file create the tables of a new file at the same time', async () => {
    const stores = await Promise.all(Array.from({ length: 6 }, () => harness.open()));
    const receipts = await Promise.all(stores.map((store) => store.receive([incoming()])));
    expect(receipts.flat().map(({ outcome }) => outcome)).toEqual(Array(6).fill('stored'));
    const versions = harness.connect().prepare('SELECT version FROM payments_inbox_meta').all();
    expect(versions).toHaveLength(1);
  });

  it('processes on one SQLite file exit if they have nothing to do, even if they have not closed the store', async () => {
    const child = startChild('idle', harness.file);
    const { code } = await child.ended;
    expect(child.out).toEqual(['idle']);
    expect(code).toBe(0);
  });

  it('processes on one SQLite file replace a thread that ends, and reject the calls that the thread had not completed', async () => {
    const child = startChild('threadDeath', harness.file, [
      '--disable-warning=ExperimentalWarning',
    ]);
    const { code } = await child.ended;
    expect(child.stderr).toBe('');
    expect(child.out).toEqual(['true true', 'stored 2', 'committed']);
    expect(code).toBe(0);
  });

  it('processes on one SQLite file print no warning if they only import the package', async () => {
    const child = startChild('import', harness.file);
    await child.ended;
    expect(child.out).toEqual(['imported']);
    expect(child.stderr).toBe('');
  });
});
