import type {
  ClaimedPoll,
  ExpectationCounts,
  ExpectationPage,
  ExpectationStore,
  NewExpectation,
  PollSettlement,
  SettledPoll,
  StartedRequest,
  StoredExpectation,
} from '../../inbox/store/inbox-store.js';
import { parseCursor } from '../../inbox/store/list-arguments.js';
import { expect } from './sql/expectations.js';
import type { Cursor, ExpectationRow } from './sql/expectations.js';
import { toEventMessage, toReceipts } from './sql/receive.js';
import { sourceName } from './sql/schema.js';
import { readPage } from './sql/search.js';
import { fromStored } from './sql/stored-rows.js';
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
    ...[company, reference, transactionId]: Parameters<ExpectationStore['attach']>
  ): ReturnType<ExpectationStore['attach']> {
    return this.session.run('attach', { company, reference, transactionId });
  }

  async cancel(company: string, reference: string): Promise<boolean> {
    return this.session.run('cancel', { company, reference });
  }

  async startRequest(
    ...[company, reference, leaseMs]: Parameters<ExpectationStore['startRequest']>
  ): Promise<StartedRequest | undefined> {
    const started = await this.session.run('startRequest', { company, reference, leaseMs });
    if (started === undefined) return undefined;
    const { previous, token, row } = started;
    return { previous, token, expectation: toExpectation(row) };
  }

  async endRequest(
    ...[{ company, reference }, token, end]: Parameters<ExpectationStore['endRequest']>
  ): Promise<boolean> {
    return this.session.run('endRequest', { company, reference, token, end });
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
    const { found, next } = await readPage(limit, after === null ? null : toCursor(after), (part) =>
      this.session.run('listExpectations', { filter, ...part }),
    );
    return {
      expectations: found.map(({ row }) => toExpectation(row)),
      next: next === null ? null : `${next.createdAt}.${next.seq}`,
    };
  }

  async claimPolls(
    request: Parameters<ExpectationStore['claimPolls']>[0],
  ): Promise<readonly ClaimedPoll[]> {
    const rows = await this.session.run('claimPolls', request);
    return Array.from(rows, (row) => ({
      seq: row.seq,
      token: row.token,
      expectation: toExpectation(row),
    }));
  }

  async releasePolls(
    ...[leases, dueInMs]: Parameters<ExpectationStore['releasePolls']>
  ): Promise<void> {
    const names = leases.map(({ seq, token }) => ({ seq, token }));
    await this.session.run('releasePolls', { leases: names, dueInMs });
    this.session.wake();
  }

  async settlePoll({ event, ...settlement }: PollSettlement): Promise<SettledPoll> {
    const message = { ...settlement, event: event && toEventMessage(event) };
    const { receipt, ...settled } = await this.session.run('settlePoll', message);
    const [received = null] = receipt === null ? [] : toReceipts([receipt], [event!]);
    if (received?.pending || settled.nextPollInMs !== null) this.session.wake();
    return { ...settled, receipt: received };
  }

  async pollNow(
    ...[selections, dueInMs]: Parameters<ExpectationStore['pollNow']>
  ): Promise<number> {
    const names = selections.map(({ company, reference }) => ({ company, reference }));
    const changed = await this.session.run('pollNow', { selections: names, dueInMs });
    if (changed > 0) this.session.wake();
    return changed;
  }

  async nextPollInMs(): Promise<number | null> {
    return this.session.run('nextPollInMs', null);
  }

  async counts(): Promise<ExpectationCounts> {
    const counts = await this.session.run('countExpectations', null);
    const { waiting, overdueUnpaid, overdueUnknown } = counts;
    return {
      waiting: { ...waiting },
      overdueUnpaid: { ...overdueUnpaid },
      overdueUnknown: { ...overdueUnknown },
    };
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
  const { polled_at, poll_result, fulfilled_at, due_in_ms, created_at } = row;
  const text = (stored: string | null): string | null => stored && fromStored(stored);
  return {
    company: row.company,
    reference: fromStored(row.reference),
    transactionId: text(row.transaction_id),
    dueBy: toDate(due_in_ms === null ? null : created_at + due_in_ms),
    schedule: JSON.parse(row.schedule) as number[],
    state: row.state,
    createdAt: new Date(created_at),
    ageMs: row.age_ms,
    polls: row.polls,
    lostPolls: row.lost_polls,
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
    otherEventId: text(row.other_event_id),
  };
}

function toDate(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms);
}

function toCursor(after: string): Cursor {
  const [, createdAt, seq] = parseCursor(after, /^(-?\d{1,16})\.(\d{1,16})$/);
  return { createdAt: Number(createdAt), seq: Number(seq) };
}
