import type {
  ExpectationCounts,
  ExpectationPage,
  ExpectationStore,
  Lease,
  NewExpectation,
  PollOutcome,
  SettleResult,
  StoredExpectation,
} from '../store/inbox-store.js';
import { attach, expect } from './sql/expectations.js';
import type { ExpectationName } from './sql/expectations.js';
import { sourceName } from './sql/schema.js';
import { readPage } from './sql/search.js';
import { leaseName } from './sql/settle.js';
import { fromStored } from './sql/stored-rows.js';
import type { ExpectationRow } from './sql/stored-rows.js';
import type { SqliteSession } from './sqlite-session.js';
import { SqliteConnection } from './thread/connection.js';
import type { DriverDatabase } from './thread/connection.js';

/** Stores expectations in the file: in the thread, or on the event loop in a transaction of the application. */
export class SqliteExpectations implements ExpectationStore {
  constructor(private readonly session: SqliteSession) {}

  /** In a transaction of the application, the store needs no wake-up: the thread notices the commit. */
  async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    if (tx !== undefined) {
      return inTransaction(tx, (connection) =>
        expect(connection, expectation, this.session.times()),
      );
    }
    const isNew = await this.session.run('expect', expectation);
    if (isNew) this.session.wake();
    return isNew;
  }

  async attach(
    company: string,
    reference: string,
    transactionId: string,
    tx?: unknown,
  ): Promise<'attached' | 'conflict' | 'unknown'> {
    const request = { company, reference, transactionId };
    if (tx === undefined) return this.session.run('attach', request);
    // Throws if the store is not open, as in expect().
    this.session.times();
    return inTransaction(tx, (connection) => attach(connection, request));
  }

  async cancel(company: string, reference: string): Promise<boolean> {
    return this.session.run('cancel', { company, reference });
  }

  async find(company: string, reference: string): Promise<StoredExpectation | undefined> {
    const row = await this.session.run('findExpectation', { company, reference });
    return row && toExpectation(row);
  }

  async list({
    filter,
    limit,
    after,
  }: Parameters<ExpectationStore['list']>[0]): Promise<ExpectationPage> {
    const { found, next } = await readPage(limit, after, (part) =>
      this.session.run('listExpectations', { filter, ...part }),
    );
    return { expectations: found.map(({ row }) => toExpectation(row)), next };
  }

  async settlePoll(lease: Lease, { result, detail, next }: PollOutcome): Promise<SettleResult> {
    const request = { lease: leaseName(lease), result, detail, next };
    const { settled, nextDue } = await this.session.run('settlePoll', request);
    if (settled && typeof next === 'number') this.session.wake();
    return { settled, nextDue };
  }

  async pollNow(
    selections: readonly ExpectationName[],
    dueInMs: readonly number[],
  ): Promise<number> {
    const names = selections.map(({ company, reference }) => ({ company, reference }));
    const changed = await this.session.run('pollNow', { selections: names, dueInMs });
    if (changed > 0) this.session.wake();
    return changed;
  }

  async eventsOf(
    company: string,
    transactionId: string,
    eventTypes: readonly string[],
  ): Promise<readonly { readonly id: string; readonly eventType: string }[]> {
    const found = await this.session.run('eventsOf', { company, transactionId, eventTypes });
    return Array.from(found, ({ id, eventType }) => ({ id, eventType }));
  }

  async counts(): Promise<ExpectationCounts> {
    const { waiting, overdue } = await this.session.run('countExpectations', null);
    return { waiting: { ...waiting }, overdue: { ...overdue } };
  }
}

/** What the store uses of a transaction of the application. `node:sqlite` and `better-sqlite3` have one of the flags. */
interface ApplicationTransaction extends DriverDatabase {
  readonly isTransaction?: unknown;
  readonly inTransaction?: unknown;
}

/** Runs statements in a transaction of the application. */
function inTransaction<T>(tx: unknown, work: (connection: SqliteConnection) => T): T {
  const found = tx as Partial<ApplicationTransaction> | null;
  if (typeof found?.prepare !== 'function') {
    throw new TypeError(
      '"tx" has no method "prepare". For a SQLite inbox, pass the transaction that context.commit passes to its ' +
        "callback, or a DatabaseSync of node:sqlite or a Database of better-sqlite3 on the inbox's file, after BEGIN.",
    );
  }
  if (found.isTransaction === false || found.inTransaction === false) {
    throw new TypeError(
      '"tx" has no open transaction. Run BEGIN first, so that the expectation is stored together with your own writes.',
    );
  }
  try {
    return work(new SqliteConnection(found as DriverDatabase));
  } catch (error) {
    if (!/no such table: payments_inbox_/.test((error as Error).message)) throw error;
    throw new TypeError(
      '"tx" is on another file than the inbox. Open the file in the "file" option of sqliteInbox().',
      { cause: error },
    );
  }
}

function toExpectation(row: ExpectationRow): StoredExpectation {
  const { polled_at, poll_result, fulfilled_at } = row;
  return {
    company: row.company,
    reference: fromStored(row.reference),
    transactionId: row.transaction_id === null ? null : fromStored(row.transaction_id),
    dueBy: toDate(row.due_by),
    schedule: JSON.parse(row.schedule) as number[],
    state: row.state,
    createdAt: new Date(row.created_at),
    ageMs: row.age_ms,
    polls: row.polls,
    lastPoll:
      polled_at === null || poll_result === null
        ? null
        : { at: new Date(polled_at), result: poll_result, detail: row.poll_detail },
    nextPollAt: toDate(row.next_poll_at),
    fulfilled:
      fulfilled_at === null
        ? null
        : {
            at: new Date(fulfilled_at),
            by: sourceName(row.fulfilled_source!),
            eventId: fromStored(row.fulfilled_id!),
            eventType: fromStored(row.fulfilled_type!),
          },
    contradiction: row.contradiction,
  };
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}
