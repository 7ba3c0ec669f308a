import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { DriverStatement } from '../../../libs/payments/src/stores/sqlite/thread/connection.js';
import { runBatch } from '../../../libs/payments/src/stores/sqlite/thread/batch.js';
import type { StoreReceipt } from '../../../libs/payments/src/inbox/store/inbox-store.js';
import type { LeaseName } from '../../../libs/payments/src/stores/sqlite/sql/settle.js';
import { SqliteDatabase } from '../../support/sqlite/sqlite-database.js';

/** The cost of an event that is received, handled at once and done. Lower a number when the code becomes cheaper. */
const COSTS = {
  statements: 4,
  /** Tables and indexes that change at the receipt, plus those that change when the delivery is done. */
  trees: 9,
};

const BUSY_TIMEOUT_MS = 1000;
const SUMMARY = { reference: 'order-17', amount: '250.00', currency: 'KES' };

let inbox: SqliteDatabase;
beforeEach(async () => {
  inbox = await SqliteDatabase.open();
});
afterEach(() => {
  inbox.close();
  jest.restoreAllMocks();
});

/** Receives events of different payments in one database transaction. Returns the leases of their deliveries. */
async function receive(worker: string, count: number): Promise<LeaseName[]> {
  const { connection, times } = inbox;
  const calls = Array.from({ length: count }, () => {
    const one = inbox.event({ assign: { workerId: worker, handlers: ['book'] }, summary: SUMMARY });
    const events = [{ ...one, orderingKey: `tx ${one.id}`, oncePerTransaction: true }];
    return { name: 'receive' as const, args: [events] };
  });
  return (await runBatch(connection, calls, times, BUSY_TIMEOUT_MS)).outcomes.map((outcome) => {
    const [receipt] = (outcome as unknown as { readonly value: StoreReceipt[] }).value;
    expect(receipt).toMatchObject({ outcome: 'stored', claimed: [{ handler: 'book' }] });
    return receipt!.claimed[0]!;
  });
}

/** Marks deliveries as done in one transaction. */
async function complete(leases: readonly LeaseName[]): Promise<void> {
  const { connection, times } = inbox;
  const calls = leases.map((lease) => ({ name: 'complete' as const, args: [lease] }));
  const settled = { value: { settled: true, nextDue: false } };
  const { outcomes } = await runBatch(connection, calls, times, BUSY_TIMEOUT_MS);
  expect(outcomes).toMatchObject(leases.map(() => settled));
}

/** The content of each table and index of the inbox, by name. A table WITHOUT ROWID is the index of its primary key. */
function contents(): Map<string, string> {
  const content = new Map<string, string>();
  const tables = inbox.all<{ name: string }>(
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'payments_%'",
  );
  for (const table of tables) {
    content.set(table.name, JSON.stringify(inbox.all(`SELECT * FROM ${table.name}`)));
    const indexes = inbox.all<{ name: string; sql: string | null }>(
      `SELECT l.name, s.sql FROM pragma_index_list('${table.name}') l JOIN sqlite_schema s ON s.name = l.name
       WHERE l.origin <> 'pk'`,
    );
    for (const { name, sql } of indexes) {
      const columns = inbox.all<{ name: string | null }>(
        `SELECT name FROM pragma_index_xinfo('${name}')`,
      );
      const entry = columns.map((column) => column.name ?? 'rowid').join(', ');
      const condition = sql?.split(/\sWHERE\s/)[1] ?? '1';
      content.set(
        name,
        JSON.stringify(inbox.all(`SELECT ${entry} FROM ${table.name} WHERE ${condition}`)),
      );
    }
  }
  return content;
}

function changed(before: Map<string, string>, after: Map<string, string>): string[] {
  return [...after].flatMap(([name, content]) => (before.get(name) === content ? [] : [name]));
}

describe('the costs of a handled event on SQLite', () => {
  it(`a handled event runs at most ${COSTS.statements} statements, in addition to those of its transaction`, async () => {
    let executed = 0;
    const counted = (statement: DriverStatement): DriverStatement => {
      const count = <Result>(result: Result): Result => {
        executed += 1;
        return result;
      };
      return {
        run: (...values) => count(statement.run(...values)),
        get: (...values) => count(statement.get(...values)),
        all: (...values) => count(statement.all(...values)),
        setReadBigInts: (on) => statement.setReadBigInts(on),
      };
    };
    const prepare = inbox.database.prepare.bind(inbox.database);
    inbox.database.prepare = (sql) => counted(prepare(sql));
    const worker = inbox.worker();
    const statementsOf = async (count: number): Promise<number> => {
      const before = executed;
      await complete(await receive(worker, count));
      return executed - before;
    };
    // The first transaction also stores the clock.
    await statementsOf(1);
    // The statements of the transaction itself are in both numbers.
    const perEvent = ((await statementsOf(30)) - (await statementsOf(10))) / 20;
    expect(perEvent).toBeGreaterThan(0);
    expect(perEvent).toBeLessThanOrEqual(COSTS.statements);
  });

  it(`a handled event writes at most ${COSTS.trees} tables and indexes`, async () => {
    const worker = inbox.worker();
    await complete(await receive(worker, 1));
    const empty = contents();
    const leases = await receive(worker, 1);
    const running = contents();
    await complete(leases);
    const written = [changed(empty, running), changed(running, contents())];
    expect(written[1]).toContain('payments_inbox_delivery_running');
    expect(written.flat().length).toBeLessThanOrEqual(COSTS.trees);
  });
});
