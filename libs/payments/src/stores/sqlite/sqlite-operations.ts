import type { ExpectationStore, InboxStore, RecordStore } from '../../inbox/store/inbox-store.js';
import { SqlEvents } from '../sql/events.js';
import { SqlPruning } from '../sql/prune.js';
import type { PruneRequest } from '../sql/prune.js';
import { SqlRecords } from '../sql/records.js';
import { forgetHandler, pauseHandler, readCatalog, register, retire } from '../sql/workers.js';
import { claim, claimSuspect, nextDueInMs } from './sql/claim.js';
import type { SqliteTransaction } from './sql/commit.js';
import { SqliteExpectationOperations } from './sql/expectations.js';
import { receive } from './sql/receive.js';
import { redrive, skip } from './sql/redrive.js';
import { complete, fail, release } from './sql/settle.js';
import { heartbeat, noteHeartbeats } from './sql/workers.js';
import { pause as pauseRead } from './thread/connection.js';
import type { SqliteSql } from './thread/connection.js';
import { sync } from './thread/database-file.js';

/** The methods of an `InboxStore` that run on the event loop. */
type Local =
  'capabilities' | 'expectations' | 'records' | 'open' | 'close' | 'commit' | 'onWake' | 'prune';

type StoreOperation = Exclude<keyof InboxStore, Local>;

/**
 * The name of an operation: a method of `InboxStore`, of its `expectations` or of its `records`; `sync`; or
 * `pruneSlice`, which is a part of `prune`. `sync` stores the clock, and its commit makes every earlier commit durable.
 */
export type OperationName =
  | StoreOperation
  | `expectations.${keyof ExpectationStore}`
  | `records.${keyof RecordStore}`
  | 'sync'
  | 'pruneSlice';

/**
 * When an operation runs:
 *
 * - `read`: immediately, because the operation does not need the lock of the writer.
 * - `write`: in a transaction with other writes that arrived together. The operation may change values that the
 *   connection caches.
 * - `cached`: like `write`, for an operation that does not change values that the connection caches.
 */
type Rule = 'read' | 'write' | 'cached';

/** The rule and the function of an operation. The function returns the result, or a promise of the result. */
export type Operation<Arguments extends readonly unknown[] = never[]> = readonly [
  rule: Rule,
  run: (sql: SqliteSql, ...args: Arguments) => unknown,
];

type Operations = {
  readonly [Name in OperationName]: Operation<
    Name extends StoreOperation ? Parameters<InboxStore[Name]> : never[]
  >;
};

/** Creates an operation that calls a method of a new object. */
const methodsOf =
  <T>(create: (sql: SqliteSql) => T) =>
  (method: keyof T, rule: Rule): Operation<unknown[]> => [
    rule,
    (sql, ...args) => {
      const object = create(sql);
      return (object[method] as (...args: unknown[]) => unknown).apply(object, args);
    },
  ];

const events = (sql: SqliteSql): SqlEvents => new SqlEvents(sql, pauseRead);
const expectation = methodsOf<ExpectationStore>((sql) => new SqliteExpectationOperations(sql));
const record = methodsOf<RecordStore>((sql) => new SqlRecords(sql));

/** The operations. The thread runs them. For a database in memory, the event loop runs the operations. */
export const OPERATIONS = {
  receive: ['cached', receive],
  claim: ['cached', claim],
  claimSuspect: ['write', claimSuspect],
  complete: ['cached', complete],
  fail: ['cached', fail],
  release: ['cached', release],
  nextDueInMs: ['read', nextDueInMs],
  newerHandled: ['read', (sql, lease) => events(sql).newerHandled(lease)],
  register: ['write', (sql, worker) => noteHeartbeats(sql, register(sql, worker))],
  heartbeat: ['write', heartbeat],
  retire: ['write', (sql, ...args) => noteHeartbeats(sql, retire(sql, ...args))],
  catalog: ['read', readCatalog],
  forgetHandler: ['write', forgetHandler],
  redrive: ['write', redrive],
  skip: ['write', skip],
  pause: [
    'write',
    (sql, handler, paused, facts) => {
      sql.wakes ||= !paused;
      return pauseHandler(sql, handler, paused, facts);
    },
  ],
  pruneSlice: ['write', (sql, request: PruneRequest) => new SqlPruning(sql).slice(request)],
  find: ['read', (sql, ...args) => events(sql).find(...args)],
  eventsOf: ['read', (sql, ...args) => events(sql).eventsOf(...args)],
  list: ['read', (sql, ...args) => events(sql).list(...args)],
  stats: ['read', (sql) => events(sql).stats()],
  failures: ['read', (sql) => events(sql).failures()],
  activity: ['read', (sql, ...args) => events(sql).activity(...args)],
  'expectations.expect': expectation('expect', 'cached'),
  'expectations.attach': expectation('attach', 'cached'),
  'expectations.cancel': expectation('cancel', 'cached'),
  'expectations.startRequest': expectation('startRequest', 'write'),
  'expectations.endRequest': expectation('endRequest', 'write'),
  'expectations.find': expectation('find', 'read'),
  'expectations.list': expectation('list', 'read'),
  'expectations.claimPolls': expectation('claimPolls', 'write'),
  'expectations.releasePolls': expectation('releasePolls', 'write'),
  'expectations.settlePoll': expectation('settlePoll', 'cached'),
  'expectations.pollNow': expectation('pollNow', 'cached'),
  'expectations.nextPollInMs': expectation('nextPollInMs', 'read'),
  'expectations.counts': expectation('counts', 'read'),
  'records.put': record('put', 'cached'),
  'records.list': record('list', 'read'),
  'records.remove': record('remove', 'cached'),
  sync: ['write', ({ connection, times }) => sync(connection, times)],
} satisfies Operations;

export type RunOperation = (name: OperationName, args: readonly unknown[]) => Promise<unknown>;

interface Forwarded {
  readonly '': InboxStore<SqliteTransaction>;
  readonly 'expectations.': ExpectationStore;
  readonly 'records.': RecordStore;
}

/** Returns a class with a method for each operation whose name begins with `prefix`. The method runs the operation. */
export function forwarding<Prefix extends keyof Forwarded>(
  prefix: Prefix,
): new (run: RunOperation) => Forwarded[Prefix] {
  class Forwarding {
    constructor(readonly run: RunOperation) {}
  }
  for (const name of Object.keys(OPERATIONS) as OperationName[]) {
    if (!name.startsWith(prefix)) continue;
    Object.defineProperty(Forwarding.prototype, name.slice(prefix.length), {
      value(this: Forwarding, ...args: unknown[]) {
        return this.run(name, args);
      },
      // The property is writable, as the methods of a class are, so that a test can replace the method.
      writable: true,
    });
  }
  return Forwarding as never;
}
