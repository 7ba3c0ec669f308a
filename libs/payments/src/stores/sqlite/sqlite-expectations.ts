import type {
  ExpectationPage,
  ExpectationStore,
  NewExpectation,
  PollSettlement,
  SettledPoll,
} from '../../inbox/store/inbox-store.js';
import { toPosition } from '../sql/expectations.js';
import { expectWithin } from './sql/expectations.js';
import { forwarding } from './sqlite-operations.js';
import type { RunOperation } from './sqlite-operations.js';
import { SqliteConnection } from './thread/connection.js';
import type { DriverDatabase, Times } from './thread/connection.js';
import { withBodies } from './thread/sent-values.js';

/** Stores expectations in the file: in the thread, or on the event loop in a transaction of the application. */
export class SqliteExpectations extends forwarding('expectations.') {
  constructor(
    run: RunOperation,
    /** The time of the store. */
    private readonly times: () => Times,
  ) {
    super(run);
  }

  /** In a transaction of the application, the store needs no wake-up: the thread notices the commit. */
  override async expect(expectation: NewExpectation, tx?: unknown): Promise<boolean> {
    if (tx === undefined) return super.expect(expectation);
    return inTransaction(tx, (connection) => expectWithin(connection, expectation, this.times()));
  }

  override async list(query: Parameters<ExpectationStore['list']>[0]): Promise<ExpectationPage> {
    // Here, because the thread reports each error as a PaymentsError.
    if (query.after !== null) toPosition(query.after);
    return super.list(query);
  }

  override async settlePoll(settlement: PollSettlement): Promise<SettledPoll> {
    const settled = await super.settlePoll(settlement);
    return {
      ...settled,
      receipt: settled.receipt && withBodies(settled.receipt, settlement.event!),
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
