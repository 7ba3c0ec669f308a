import type { ExpectationStore, InboxStore } from '../../inbox/store/inbox-store.js';
import { SqlEvents } from '../sql/events.js';
import { catalog, FORGET_SLICE, forgetHandler, pause } from './sql/catalog.js';
import { claim, claimSuspect, nextDueInMs } from './sql/claim.js';
import { SqliteExpectationOperations } from './sql/expectations.js';
import { newerHandled } from './sql/ordering.js';
import { prune } from './sql/prune.js';
import { receive } from './sql/receive.js';
import { redrive } from './sql/redrive.js';
import { LAYOUT } from './sql/schema.js';
import { complete, fail, release, skip } from './sql/settle.js';
import { heartbeat, register, retire } from './sql/workers.js';
import type { SqliteTransaction } from './sqlite-transaction.js';
import type { SqliteConnection } from './thread/connection.js';
import { sync } from './thread/database-file.js';
import { pause as pauseRead } from './thread/sqlite-sql.js';
import type { SqliteSql } from './thread/sqlite-sql.js';

/** The methods of an `InboxStore` that run on the event loop. */
type Local = 'capabilities' | 'expectations' | 'open' | 'close' | 'commit' | 'onWake';

type StoreOperation = Exclude<keyof InboxStore, Local>;

/**
 * A method of `InboxStore` or of its `expectations`; or `sync`, which stores the clock, and whose commit makes every earlier
 * commit durable; or `transaction`, which runs one transaction of another operation.
 */
export type OperationName =
  StoreOperation | `expectations.${keyof ExpectationStore}` | 'sync' | 'transaction';

/**
 * When an operation runs:
 *
 * - `read`: at once, because it does not need the lock of the writer.
 * - `sliced`: at once. Each of its transactions is a write of its own, and other operations run between them.
 * - `write`: in a transaction with other writes that arrived together. It may change what the connection caches.
 * - `cached`: the same, for a write that changes nothing that the connection caches.
 */
type Rule = 'read' | 'sliced' | 'write' | 'cached';

/** An operation may return its result at once. */
export type Operation<Arguments extends readonly unknown[] = never[]> = readonly [
  rule: Rule,
  run: (sql: SqliteSql, ...args: Arguments) => unknown,
];

type Operations = {
  readonly [Name in OperationName]: Operation<
    Name extends StoreOperation ? Parameters<InboxStore[Name]> : never[]
  >;
};

/** The operations. The thread runs them, or the event loop for a database in memory. */
export const OPERATIONS = {
  receive: ['cached', receive],
  claim: ['cached', claim],
  claimSuspect: ['write', claimSuspect],
  complete: ['cached', complete],
  fail: ['cached', fail],
  release: ['cached', release],
  nextDueInMs: ['read', nextDueInMs],
  newerHandled: ['read', newerHandled],
  register: ['write', ({ connection, times }, worker) => register(connection, worker, times)],
  heartbeat: [
    'write',
    (sql, worker) => {
      const { freed, ...result } = heartbeat(sql.connection, { worker }, sql.times);
      sql.wakes = freed > 0;
      return result;
    },
  ],
  retire: [
    'write',
    ({ connection, times }, worker, graceMs) => retire(connection, { worker, graceMs }, times),
  ],
  catalog: ['read', ({ connection }) => catalog(connection)],
  forgetHandler: ['sliced', forget],
  redrive: [
    'write',
    (sql, selections, options) => {
      const changed = redrive(sql.connection, { selections, ...options }, sql.times);
      sql.wakes = changed > 0;
      return changed;
    },
  ],
  skip: [
    'write',
    (sql, selections) => {
      const skipped = skip(sql.connection, { selections }, sql.times);
      sql.wakes = skipped > 0;
      return skipped;
    },
  ],
  pause: [
    'write',
    (sql, handler, paused) => {
      pause(sql.connection, { handler, paused });
      sql.wakes = !paused;
    },
  ],
  prune: ['sliced', pruneAll],
  find: ['read', (sql, ...args) => events(sql).find(...args)],
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
  sync: ['write', ({ connection, times }) => sync(connection, times)],
  transaction: ['write', (sql, work: (sql: SqliteSql) => unknown) => work(sql)],
} satisfies Operations;

function events(sql: SqliteSql): SqlEvents {
  return new SqlEvents(sql, LAYOUT, pauseRead);
}

function expectation(method: keyof ExpectationStore, rule: Rule): Operation {
  return [
    rule,
    (sql, ...args) =>
      (new SqliteExpectationOperations(sql)[method] as (...args: unknown[]) => unknown)(...args),
  ];
}

/** See `InboxStore.forgetHandler`. */
async function forget(sql: SqliteSql, handler: string): Promise<number | null> {
  let skipped = 0;
  for (let last = FORGET_SLICE; last === FORGET_SLICE; skipped += last) {
    const slice = await sql.transaction(({ connection, times }) =>
      forgetHandler(connection, { handler }, times),
    );
    if (slice === null) return skipped === 0 ? null : skipped;
    last = slice;
  }
  return skipped;
}

/** How many events one transaction prunes at most, because a receive that arrives meanwhile waits for it. */
const PRUNE_SLICE = 100;

/** The kept event that was read last. */
const lastKept = new WeakMap<SqliteConnection, number>();

/** See `InboxStore.prune`. */
async function pruneAll(
  sql: SqliteSql,
  request: Parameters<InboxStore['prune']>[0],
): Promise<number> {
  let changed = 0;
  let done = false;
  while (!done && changed < request.limit) {
    const slice = {
      ...request,
      limit: Math.min(PRUNE_SLICE, request.limit - changed),
      lastKept: lastKept.get(sql.connection) ?? 0,
    };
    const pruned = await sql.transaction(({ connection, times }) =>
      prune(connection, slice, times),
    );
    changed += pruned.changed;
    ({ done } = pruned);
    lastKept.set(sql.connection, pruned.lastKept);
  }
  return changed;
}

/** Runs an operation in the thread, or on the event loop for a database in memory. */
export type RunOperation = (name: OperationName, args: readonly unknown[]) => Promise<unknown>;

interface Forwarded {
  readonly '': InboxStore<SqliteTransaction>;
  readonly 'expectations.': ExpectationStore;
}

/** A class whose methods run the operations whose names are a prefix and the name of the method. */
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
      // As methods of a class are, so that a test can replace one.
      writable: true,
    });
  }
  return Forwarding as never;
}
