import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { SqliteDatabase } from '../../../../../../test/support/sqlite/sqlite-database.js';
import type { ExpectationFilter } from '../../../inbox/store/inbox-store.js';
import { OPERATIONS } from '../thread/operations.js';
import { listExpectations } from './expectations.js';
import { SLICE } from './search.js';

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
function expectMany(count: number): void {
  for (let n = 0; n < count; n += 1) {
    const [company, reference] = [n % 2 === 0 ? 'acme' : 'umbrella', `order-${n}`];
    const rest = { transactionId: `tx-${n}`, dueInMs: null, schedule: [1], firstPollInMs: 0 };
    OPERATIONS.expect(inbox.connection, { company, reference, ...rest }, inbox.times);
  }
  statements = [];
}

/** The plan of a statement, as one line. */
function planOf(sql: string): string {
  const lines = inbox.all<{ detail: string }>(`EXPLAIN QUERY PLAN ${sql.replaceAll(/\?\d/g, '?')}`);
  return lines.map(({ detail }) => detail).join('; ');
}

describe('open expectations on SQLite', () => {
  it('EX-14 receive runs one more statement for an event that can fulfil, and none for other events', () => {
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

  it('EX-14 due polls are found with one index, and the next one too', () => {
    expectMany(SLICE);
    expect(OPERATIONS.nextPollInMs(inbox.connection, null, inbox.times)).toBe(0);
    expect(planOf(statements.at(-1)!)).toContain('expectation_poll');
    statements = [];
    const request = { limit: 3, leaseMs: 1000 };
    expect(OPERATIONS.claimPolls(inbox.connection, request, inbox.times)).toHaveLength(3);
    const plan = planOf(statements.find((sql) => sql.includes('ORDER BY next_poll_at'))!);
    expect(plan).toContain('SEARCH payments_inbox_expectation USING COVERING INDEX');
    expect(plan).not.toContain('TEMP B-TREE');
  });

  it('EX-14 a list by state and company reads one slice, however many expectations are in the state', () => {
    expectMany(2 * SLICE);
    const filter = { state: 'waiting', company: 'nobody' } as const;
    const request = { filter, limit: 5, after: null };
    const { found, next } = listExpectations(inbox.connection, request, inbox.times);
    expect(found).toEqual([]);
    expect(next).not.toBeNull();
    const rows = statements.find((sql) => sql.includes('+x.state = ?'))!;
    expect(planOf(rows)).toMatch(/SEARCH x USING INTEGER PRIMARY KEY/);
  });

  it.each<[ExpectationFilter, string]>([
    [{}, 'expectation_created'],
    [
      { from: new Date(0), to: new Date(1e12) },
      'expectation_created (created_at>? AND created_at<?)',
    ],
    [{ state: 'waiting' }, 'expectation_state (state=?)'],
    [{ transactionId: 't-7', state: 'fulfilled' }, 'expectation_transaction (transaction_id=?)'],
    [{ fulfilledBy: 'poll' }, 'expectation_polled'],
    [{ contradictory: true }, 'expectation_contradiction'],
    [{ search: 'order-7' }, 'SEARCH payments_inbox_expectation USING INTEGER PRIMARY KEY'],
    [{ search: 'order-' }, 'expectation_created'],
  ])('EX-14 a list with the filter %j reads a slice of the index %s', (filter, index) => {
    expectMany(SLICE + 1);
    const request = { filter, limit: 5, after: null };
    listExpectations(inbox.connection, request, inbox.times);
    const [slice] = statements.filter((sql) => sql.includes('LIMIT 1 OFFSET'));
    const plan = planOf(slice!);
    expect(plan).toContain(index);
    // Only a small selection, by number or of one transaction, is sorted.
    expect(plan.includes('TEMP B-TREE')).toBe(/PRIMARY KEY|transaction/.test(index));
    const next = { ...request, after: { createdAt: inbox.now, seq: 100 } };
    const { found } = listExpectations(inbox.connection, next, inbox.times);
    expect(found.every(({ at }) => at.seq < 100)).toBe(true);
  });

  it('EX-12 a list finds a few matching expectations among several slices of others', () => {
    expectMany(2 * SLICE);
    const found: string[] = [];
    const filter = { company: 'acme', search: 'order-' };
    let slices = 0;
    for (let after: Parameters<typeof listExpectations>[1]['after'] | undefined; after !== null;) {
      const request = { filter, limit: 10_000, after: after ?? null };
      const slice = listExpectations(inbox.connection, request, inbox.times);
      found.push(...slice.found.map(({ row }) => row.reference));
      after = slice.next;
      slices += 1;
    }
    expect(slices).toBe(3);
    expect(found).toHaveLength(SLICE);
    expect(new Set(found).size).toBe(SLICE);
    expect(found[0]).toBe(`order-${2 * SLICE - 2}`);
  });

  it('EX-07 counts read at most 10,001 index entries', () => {
    expectMany(3);
    expect(OPERATIONS.countExpectations(inbox.connection)).toEqual({
      waiting: { count: 3, more: false },
      overdueUnpaid: { count: 0, more: false },
      overdueUnknown: { count: 0, more: false },
    });
    expect(statements.every((sql) => sql.includes('LIMIT 10001'))).toBe(true);
    expect(planOf(statements[0]!)).toContain('COVERING INDEX payments_inbox_expectation_state');
    for (const statement of statements.slice(1, 3)) {
      expect(planOf(statement)).toContain('expectation_overdue (poll_result=?)');
    }
  });
});
