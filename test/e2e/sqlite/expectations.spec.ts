import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { NewExpectation } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { incoming, SqliteHarness } from '../../support/sqlite/sqlite-harness.ts';

let harness: SqliteHarness;
beforeEach(() => {
  harness = new SqliteHarness();
});
afterEach(() => harness.dispose());

function order(reference: string, fields: Partial<NewExpectation> = {}): NewExpectation {
  const [company, schedule] = ['acme', [15_000]];
  const rest = { transactionId: null, dueInMs: null, firstPollInMs: 0 };
  return { company, reference, schedule, ...rest, ...fields };
}

describe('expectations in the transaction of an application on SQLite', () => {
  it('EX-01 expect() writes in the open transaction of a connection of the application', async () => {
    const { expectations } = await harness.open();
    const tx = harness.connect();
    tx.exec('CREATE TABLE orders (id TEXT)');
    tx.exec("BEGIN; INSERT INTO orders VALUES ('a')");
    expect(await expectations.expect(order('a'), tx)).toBe(true);
    expect(await expectations.expect(order('a'), tx)).toBe(false);
    expect(await expectations.find('acme', 'a')).toBeUndefined();
    tx.exec('ROLLBACK; BEGIN');
    expect(await expectations.expect(order('a'), tx)).toBe(true);
    tx.exec('COMMIT');
    expect(await expectations.find('acme', 'a')).toMatchObject({ state: 'waiting' });
  });

  it('EX-01 a connection that reads integers as bigint stores the same expectation', async () => {
    const store = await harness.open();
    const tx = new DatabaseSync(harness.file, { readBigInts: true, timeout: 5000 });
    tx.exec('BEGIN');
    await store.expectations.expect(order('a', { transactionId: 'tx' }), tx);
    tx.exec('COMMIT');
    tx.close();
    expect(await store.expectations.claimPolls({ limit: 5, leaseMs: 1000 })).toHaveLength(1);
  });

  it('EX-03 IN-36 a poll that is stored in a transaction after a jump of the wall clock is due at the right time', async () => {
    const store = await harness.open();
    harness.jumpWallClock(-3_600_000);
    const tx = harness.connect();
    tx.exec('BEGIN');
    await store.expectations.expect(order('soon', { firstPollInMs: 10_000 }), tx);
    tx.exec('COMMIT');
    const dueInMs = await store.expectations.nextPollInMs();
    expect(dueInMs).toBeGreaterThan(5000);
    expect(dueInMs).toBeLessThanOrEqual(10_000);
  });

  it.each([3_600_000, -3_600_000])(
    'EX-03 IN-36 a jump of the wall clock by %d ms does not change the age of an expectation, which determines its next poll',
    async (jump) => {
      const store = await harness.open();
      await store.expectations.expect(order('jumped'));
      harness.jumpWallClock(jump);
      harness.advance(2000);
      const { ageMs } = (await store.expectations.find('acme', 'jumped'))!;
      expect(Math.abs(ageMs - 2000)).toBeLessThan(1000);
    },
  );

  it('EX-03 a poll stored in a transaction is not due too early in a process whose clock is ahead', async () => {
    const [behind, ahead] = [await harness.open(), await harness.open({}, 60_000)];
    harness.connect().exec('UPDATE payments_inbox_meta SET clock = clock + 60000');
    const tx = harness.connect();
    tx.exec('BEGIN');
    await behind.expectations.expect(order('soon', { firstPollInMs: 10_000 }), tx);
    tx.exec('COMMIT');
    await ahead.receive([incoming()]);
    expect(await ahead.expectations.nextPollInMs()).toBeGreaterThan(5000);
  });

  it('EX-01 expect() rejects a transaction that the store cannot use', async () => {
    const store = await harness.open();
    const { expectations } = store;
    const other = new DatabaseSync(':memory:');
    other.exec('BEGIN');
    const unusable: [unknown, string][] = [
      [{ query: () => {} }, 'context.commit'],
      [null, 'has no method "prepare"'],
      [harness.connect(), 'Run BEGIN first'],
      [other, 'a connection to another file'],
    ];
    for (const [tx, message] of unusable) {
      const call = expectations.expect(order('a'), tx);
      const error: unknown = await call.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(TypeError);
      expect(String(error)).toContain(message);
    }
    other.close();
    await store.close();
    const tx = harness.connect();
    tx.exec('BEGIN');
    await expect(expectations.expect(order('a'), tx)).rejects.toThrow('is closed');
    tx.exec('ROLLBACK');
  });
});

describe('expectations on SQLite', () => {
  it('EX-03 a worker of another process wakes after an expectation was committed', async () => {
    const [store, other] = [await harness.open(), await harness.open()];
    const woken = () =>
      new Promise<void>((resolve) => {
        const stop = other.onWake(() => {
          stop();
          resolve();
        });
      });
    for (const inside of [false, true]) {
      const wake = woken();
      const tx = inside ? harness.connect() : undefined;
      tx?.exec('BEGIN');
      await store.expectations.expect(order(String(inside)), tx);
      tx?.exec('COMMIT');
      await wake;
    }
  });

  it('EX-03 expect(), pollNow() and a settled poll wake the workers of the same process', async () => {
    const store = await harness.open();
    let wakes = 0;
    store.onWake(() => {
      wakes += 1;
    });
    const { expectations } = store;
    await expectations.expect(order('a'));
    await expectations.expect(order('a'));
    expect(wakes).toBe(1);
    await expectations.pollNow([order('a'), order('b')], [0, 0]);
    expect(wakes).toBe(2);
    const [lease] = await expectations.claimPolls({ limit: 1, leaseMs: 1000 });
    const outcome = { result: 'pending', detail: null, next: 0 } as const;
    const settlement = { lease: lease!, outcome, event: null, eventTypes: [], keepLost: false };
    await expectations.settlePoll(settlement);
    expect(wakes).toBe(3);
  });

  it('EX-01 references and transaction ids with any characters are stored, found and searched', async () => {
    const { expectations } = await harness.open();
    const names = ['naïve 😀 "1"', String.raw`back\slash`, 'naïve'];
    for (const name of names) await expectations.expect(order(name, { transactionId: `${name}!` }));
    const list = async (search: string) =>
      (await expectations.list({ filter: { search }, limit: 10, after: null })).expectations.map(
        ({ reference, transactionId }) => [reference, transactionId],
      );
    const pairs = names.map((name) => [name, `${name}!`]);
    expect(await list('naïve')).toEqual([pairs[2], pairs[0]]);
    expect(await list('naïve 😀 "')).toEqual([pairs[0]]);
    expect(await list('back\\')).toEqual([pairs[1]]);
    expect(await list('')).toHaveLength(3);
  });
});
