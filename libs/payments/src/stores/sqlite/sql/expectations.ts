import type {
  NewExpectation,
  PollChange,
  PollSettlement,
} from '../../../inbox/store/inbox-store.js';
import { expectStatements, SqlExpectations } from '../../sql/expectations.js';
import type { PolledRow } from '../../sql/expectations.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { dialectAt, pause, toBound } from '../thread/connection.js';
import type { SqliteSql } from '../thread/connection.js';
import { fulfilWith, receive } from './receive.js';

/** The expectations of a SQLite inbox, for one operation. */
export class SqliteExpectationOperations extends SqlExpectations {
  constructor(private readonly sql: SqliteSql) {
    super(sql);
  }

  protected override wake(): void {
    this.sql.wakes = true;
  }

  /** The store calls {@link expectWithin} instead, because a transaction of the application is synchronous. */
  protected override inTransaction(): never {
    throw new TypeError('The thread cannot use a transaction of the application.');
  }

  protected override readonly pause = pause;

  protected override async apply(
    change: PollChange,
    settlement: PollSettlement,
    { company }: PolledRow,
  ) {
    const [receipt = null] = receive(this.sql, change.event === null ? [] : [change.event]);
    if (receipt?.outcome === 'outdated') return { state: undefined, receipt };
    const isFound = settlement.outcome.result === 'event';
    const id = change.storedId ?? (isFound ? receipt!.id : null);
    if (id !== null) fulfilWith(this.sql, settlement.lease.seq, company, id);
    return { state: await this.recordPoll(change, settlement), receipt };
  }
}

/** Stores an expectation synchronously, in a transaction of the application. */
export function expectWithin(
  connection: SqliteConnection,
  expectation: NewExpectation,
  times: Times,
): boolean {
  const dialect = dialectAt(times);
  // In a transaction of the application, the clock of this process may be behind the clock of another process.
  const now: typeof dialect.now = (clock) => {
    const time = dialect.now(clock);
    return clock === 'wall' ? time : `(SELECT max(clock, ${time}) FROM payments_inbox_meta)`;
  };
  const { sql, values } = expectStatements({ ...dialect, now }, expectation);
  return sql.some((statement) => connection.run(statement, toBound(statement, values, times)) > 0);
}
