import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import type { ExpectationFilter } from '../../../inbox/store/inbox-store.js';
import { SLICE } from '../../sql/sql-connection.js';

let inbox: SqliteDatabase;
let statements: string[];
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
  statements = [];
  const { connection } = inbox;
  for (const method of ['all', 'get', 'insert', 'run'] as const) {
    const original = connection[method].bind(connection) as (...given: unknown[]) => unknown;
    jest.spyOn(connection, method).mockImplementation((...given) => {
      statements.push(given[0] as string);
      return original(...given) as never;
    });
  }
});
afterEach(() => inbox.close());

/** Stores open expectations, every other one for the company `acme`. */
async function expectMany(count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const [company, reference] = [n % 2 === 0 ? 'acme' : 'umbrella', `order-${n}`];
    const rest = { transactionId: `tx-${n}`, dueInMs: null, schedule: [1], firstPollInMs: 0 };
    await inbox.store().expectations.expect({ company, reference, ...rest });
  }
  statements = [];
}

/** The plan of a statement, as one line. */
function planOf(sql: string): string {
  const lines = inbox.all<{ detail: string }>(
    `EXPLAIN QUERY PLAN ${sql.replaceAll(/[?$]\d+|::\w+(\[\])?/g, (found) => (found[0] === ':' ? '' : '?'))}`,
  );
  return lines.map(({ detail }) => detail).join('; ');
}

describe('open expectations on SQLite', () => {
  it('EX-14 receive() runs one more statement for an event that can fulfil expectations, but not for other events', () => {
    const run = (fulfils: boolean, id: string) => {
      statements = [];
      inbox.receive({ id, orderingKey: 'tx', reference: 'order', fulfils });
      return statements;
    };
    const before = run(false, 'a');
    expect(before.filter((sql) => sql.includes('expectation'))).toEqual([]);
    const after = run(true, 'b');
    expect(after.length).toBe(before.length + 1);
    const plan = planOf(after.find((sql) => sql.includes('payments_inbox_expectation'))!);
    expect(plan).toContain('expectation_transaction (transaction_id=? AND company=?)');
    expect(plan).toContain('expectation_reference (reference=? AND company=?)');
  });

  it('EX-14 due polls and the time of the next poll are found with one index', async () => {
    await expectMany(SLICE);
    const { expectations } = inbox.store();
    expect(await expectations.nextPollInMs()).toBe(0);
    expect(planOf(statements.at(-1)!)).toContain('expectation_poll');
    statements = [];
    expect(await expectations.claimPolls({ limit: 3, leaseMs: 1000 })).toHaveLength(3);
    expect(statements).toHaveLength(1);
    const plan = planOf(statements[0]!);
    expect(plan).toContain('SEARCH x USING COVERING INDEX payments_inbox_expectation_poll');
    expect(plan).toContain('SEARCH payments_inbox_expectation USING INTEGER PRIMARY KEY');
    expect(plan).not.toContain('TEMP B-TREE');
  });

  it('EX-11 one statement releases many polls, another statement makes many polls due, and both look up each poll in an index', async () => {
    await expectMany(30);
    const { expectations } = inbox.store();
    const leases = await expectations.claimPolls({ limit: 20, leaseMs: 1000 });
    statements = [];
    await expectations.releasePolls(leases, []);
    const selections = leases.map(({ expectation }) => expectation);
    expect(await expectations.pollNow(selections, [])).toBe(20);
    expect(statements).toHaveLength(2);
    const [release, pollNow] = statements.map(planOf);
    expect(release).toMatch(/SEARCH x USING INTEGER PRIMARY KEY/);
    expect(pollNow).toContain('expectation_reference (reference=? AND company=?)');
    for (const plan of [release, pollNow]) expect(plan).not.toContain('SCAN x');
  });

  it('EX-14 a list lets other operations run after each slice, for any number of expectations', async () => {
    await expectMany(2 * SLICE);
    const filter = { state: 'waiting', company: 'nobody' } as const;
    let turns = 0;
    const counting = setInterval(() => (turns += 1), 0);
    const page = await inbox.store().expectations.list({ filter, limit: 5, after: null });
    clearInterval(counting);
    expect(page).toEqual({ expectations: [], next: null });
    const slices = statements.filter((sql) => sql.includes(`LIMIT ${SLICE}`));
    expect(slices).toHaveLength(3);
    expect(statements).toHaveLength(2 * slices.length);
    expect(turns).toBeGreaterThan(0);
    expect(planOf(slices[0]!)).toContain('expectation_state (state=?)');
    expect(planOf(slices[0]!)).not.toContain('TEMP B-TREE');
  });

  it.each<[ExpectationFilter, string]>([
    [{}, 'expectation_created'],
    [
      { from: new Date(0), to: new Date(1e12) },
      'expectation_created (created_at>? AND created_at<?)',
    ],
    [{ state: 'waiting' }, 'expectation_state (state=?)'],
    [{ transactionId: 't-7', state: 'fulfilled' }, 'expectation_transaction (transaction_id=?)'],
    [{ fulfilledBy: 'poll' }, 'expectation_by_poll'],
    [{ contradictory: true }, 'expectation_contradiction'],
    [{ search: 'order-7' }, 'SEARCH x USING INTEGER PRIMARY KEY'],
    [{ search: 'order-' }, 'expectation_created'],
  ])('EX-14 a list with the filter %j reads a slice of the index %s', async (filter, index) => {
    await expectMany(SLICE + 1);
    const { expectations } = inbox.store();
    await expectations.list({ filter, limit: 5, after: null });
    const slice = statements.find((sql) => sql.includes('AS age_ms'))!;
    const plan = planOf(slice);
    expect(plan).toContain(index);
    // Only a small selection, by number or of one transaction, is sorted.
    expect(plan.includes('TEMP B-TREE')).toBe(/PRIMARY KEY|transaction/.test(index));
    const after = `${inbox.now}.100`;
    const next = await expectations.list({ filter, limit: 5, after });
    for (const { reference } of next.expectations) {
      expect(Number(reference.replace('order-', ''))).toBeLessThan(99);
    }
  });

  it('EX-12 a list finds a few matching expectations among several slices of other expectations', async () => {
    await expectMany(2 * SLICE);
    const filter = { company: 'acme', search: 'order-' };
    const { expectations } = inbox.store();
    const page = await expectations.list({ filter, limit: 10_000, after: null });
    const found = page.expectations.map(({ reference }) => reference);
    expect(page.next).toBeNull();
    expect(found).toHaveLength(SLICE);
    expect(new Set(found).size).toBe(SLICE);
    expect(found[0]).toBe(`order-${2 * SLICE - 2}`);
  });

  it('IN-42 a page of a list reads at most 20,000 expectations, and the next page continues after these expectations', async () => {
    await expectMany(21_000);
    const filter = { search: 'order-', company: 'nobody' };
    const { expectations } = inbox.store();
    statements = [];
    const first = await expectations.list({ filter, limit: 5, after: null });
    expect(statements.filter((sql) => sql.includes(`LIMIT ${SLICE}`)).length).toBeLessThanOrEqual(
      12,
    );
    expect(first.expectations).toEqual([]);
    expect(first.next).not.toBeNull();
    const second = await expectations.list({ filter, limit: 5, after: first.next });
    expect(second).toEqual({ expectations: [], next: null });
  });

  it('EX-07 each count reads at most 10,001 index entries', async () => {
    await expectMany(3);
    expect(await inbox.store().expectations.counts()).toEqual({
      waiting: { count: 3, more: false },
      overdueUnpaid: { count: 0, more: false },
      overdueUnknown: { count: 0, more: false },
    });
    expect(statements).toHaveLength(1);
    expect(statements[0]!.match(/LIMIT 10001/g)).toHaveLength(3);
    const plan = planOf(statements[0]!);
    expect(plan).toContain('COVERING INDEX payments_inbox_expectation_state (state=?)');
    expect(plan.match(/expectation_overdue \(last_result=\?\)/g)).toHaveLength(2);
  });
});
