import type {
  ExpectationStore,
  NewExpectation,
  PollSettlement,
  SettledPoll,
} from '../../inbox/store/inbox-store.js';
import { toPosition } from '../sql/expectations.js';
import { expectWithin } from './sql/expectations.js';
import type { ArgumentsOf, OperationName, ResultOf } from './sqlite-operations.js';
import type { SqliteSession } from './sqlite-session.js';
import { SqliteConnection } from './thread/connection.js';
import type { DriverDatabase } from './thread/connection.js';
import { toReceipt, toSent } from './thread/sent-values.js';

/** Stores expectations in the file: in the thread, or on the event loop in a transaction of the application. */
export class SqliteExpectations implements ExpectationStore {
  readonly attach = this.#forward('expectations.attach');
  readonly cancel = this.#forward('expectations.cancel');
  readonly startRequest = this.#forward('expectations.startRequest');
  readonly endRequest = this.#forward('expectations.endRequest');
  readonly find = this.#forward('expectations.find');
  readonly claimPolls = this.#forward('expectations.claimPolls');
  readonly nextPollInMs = this.#forward('expectations.nextPollInMs');
  readonly counts = this.#forward('expectations.counts');

  constructor(private readonly session: SqliteSession) {}

  /** In a transaction of the application, the store needs no wake-up: the thread notices the commit. */
  async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    if (tx === undefined) return this.session.run('expectations.expect', expectation);
    return inTransaction(tx, (connection) =>
      expectWithin(connection, expectation, this.session.times()),
    );
  }

  async releasePolls(
    ...[leases, dueInMs]: Parameters<ExpectationStore['releasePolls']>
  ): Promise<void> {
    const names = leases.map(({ seq, token }) => ({ seq, token }));
    await this.session.run('expectations.releasePolls', names, dueInMs);
  }

  async list(query: Parameters<ExpectationStore['list']>[0]): ReturnType<ExpectationStore['list']> {
    // Here, because the thread reports each error as a PaymentsError.
    if (query.after !== null) toPosition(query.after);
    return this.session.run('expectations.list', query);
  }

  async settlePoll({ event, ...settlement }: PollSettlement): Promise<SettledPoll> {
    const sent = { ...settlement, event: event && toSent(event) };
    const { receipt, ...settled } = await this.session.run('expectations.settlePoll', sent);
    return { ...settled, receipt: receipt && toReceipt(receipt, event!) };
  }

  async pollNow(
    ...[selections, dueInMs]: Parameters<ExpectationStore['pollNow']>
  ): Promise<number> {
    const names = selections.map(({ company, reference }) => ({ company, reference }));
    return this.session.run('expectations.pollNow', names, dueInMs);
  }

  #forward<Name extends OperationName>(name: Name) {
    return (...args: ArgumentsOf<Name>): Promise<ResultOf<Name>> => this.session.run(name, ...args);
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
