import { contradictionDetail } from '../../../inbox/store/expectation-store.js';
import type {
  ExpectationState,
  NewExpectation,
  PollSettlement,
  SettledPoll,
} from '../../../inbox/store/inbox-store.js';
import { expectStatements, SqlExpectations } from '../../sql/expectations.js';
import type { SqliteConnection, Times } from '../thread/connection.js';
import { dialectAt, pause, toBound } from '../thread/connection.js';
import type { SqliteSql } from '../thread/connection.js';
import { COUNTS_ONCE } from './ordering.js';
import { fulfilWith, receive } from './receive.js';
import { fromStored, toStored } from '../../sql/sql-connection.js';

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

  protected override async settleWithEvents(settlement: PollSettlement): Promise<SettledPoll> {
    const { lease, outcome, event, eventTypes } = settlement;
    const { connection } = this.sql;
    const row = connection.get<LeasedRow>(
      `SELECT company, state, transaction_id FROM payments_inbox_expectation
       WHERE seq = ? AND token = ? AND leased = 1`,
      [lease.seq, lease.token],
    );
    if (row === undefined) return this.recordPoll(settlement);
    const isFound = outcome.result === 'event';
    if (!isFound && row.state !== 'waiting') return this.recordPoll(settlement);
    const stored = storedEvents(connection, row, eventTypes);
    const isSame = isFound && stored.some(({ eventType }) => eventType === event!.eventType);
    const rival = isSame ? undefined : stored[0];
    const received = rival === undefined && event !== null ? [event] : [];
    const [receipt = null] = receive(this.sql, received);
    if (receipt?.outcome === 'outdated') {
      const { result, detail } = outcome;
      const unchanged = { settled: false, result, detail, changed: false, nextPollInMs: null };
      return { ...unchanged, state: row.state, receipt };
    }
    const id = rival?.id ?? (isFound ? receipt!.id : null);
    if (id !== null) fulfilWith(this.sql, lease.seq, row.company, id);
    const contradiction =
      isFound && rival !== undefined
        ? ({
            result: 'contradiction',
            detail: contradictionDetail(event!.eventType, rival),
          } as const)
        : undefined;
    const settled = await this.recordPoll(settlement, contradiction);
    return { ...settled, changed: settled.state !== row.state, receipt };
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
  const now: typeof dialect.now = (clock, parameters) => {
    const time = dialect.now(clock, parameters);
    return clock === 'wall' ? time : `(SELECT max(clock, ${time}) FROM payments_inbox_meta)`;
  };
  const { sql, values } = expectStatements({ ...dialect, now }, expectation);
  return sql.some((statement) => connection.run(statement, values.map(toBound)) > 0);
}

interface LeasedRow {
  readonly company: string;
  readonly state: ExpectationState;
  readonly transaction_id: string | null;
}

function storedEvents(
  connection: SqliteConnection,
  { company, transaction_id }: LeasedRow,
  eventTypes: readonly string[],
): { readonly id: string; readonly eventType: string }[] {
  if (transaction_id === null) return [];
  return eventTypes.flatMap((eventType) => {
    const found = connection.get<{ id: string }>(
      `SELECT id FROM payments_inbox_event
       WHERE ordering_key = ? AND event_type = ? AND company = ? AND ${COUNTS_ONCE}`,
      [transaction_id, toStored(eventType), company],
    );
    return found === undefined ? [] : [{ id: fromStored(found.id), eventType }];
  });
}
