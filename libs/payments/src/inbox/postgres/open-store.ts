import type { PaymentsRuntime } from '../../runtime/payments-runtime.js';
import { Semaphore } from '../../runtime/semaphore.js';
import { endWithin, openPool } from './connection/connection-pool.js';
import { ConnectionSource } from './connection/connection-source.js';
import { PostgresInboxError } from './connection/database-failure.js';
import { migrate } from './connection/schema-migrator.js';
import { checkServer } from './connection/server-check.js';
import { WakeListener } from './connection/wake-listener.js';
import { WakeNotifier } from './connection/wake-notifier.js';
import type { ResolvedPostgresOptions } from './postgres-options.js';
import { ReceiveQueue } from './receive-queue.js';
import { SettleQueue } from './settle-queue.js';
import { ClaimCursors } from './sql/claim-cursors.js';
import { ClaimStatement } from './sql/claim.js';
import { CommitTransaction } from './sql/commit.js';
import { NextDueStatement } from './sql/next-due.js';
import { StrandedKeys } from './sql/ordering.js';
import { Pruning } from './sql/prune.js';
import { ReceiveStatement } from './sql/receive.js';
import { SettleStatement } from './sql/settle.js';

/** What an open store consists of. */
export interface OpenStore {
  readonly source: ConnectionSource;
  readonly receives: ReceiveQueue;
  readonly claims: ClaimStatement;
  readonly nextDue: NextDueStatement;
  readonly settlements: SettleQueue;
  readonly commits: CommitTransaction;
  readonly pruning: Pruning;
  readonly stranded: StrandedKeys;
  readonly notifier: WakeNotifier;
  readonly listener: WakeListener;
  close(): Promise<void>;
}

/** Connects, checks the server and sets up the schema. */
export async function openStore(
  options: ResolvedPostgresOptions,
  schema: string,
  runtime: PaymentsRuntime,
): Promise<OpenStore> {
  const { connectTimeoutMs, statementTimeoutMs, pollMs } = options;
  const { pool, size, listeningClient } = await openPool(options);
  const source = new ConnectionSource(pool, options, runtime);
  const end = async (): Promise<void> => {
    source.close();
    if (options.pool === undefined) await endWithin(connectTimeoutMs, runtime, pool.end());
  };
  try {
    await checkServer(source);
    await migrate(source, options.schema, runtime);
  } catch (error) {
    await end();
    throw error;
  }
  const receive = new ReceiveStatement(source, schema);
  const receives = new ReceiveQueue((events) => receive.receive(events));
  const settle = new SettleStatement(source, schema);
  const notifier = new WakeNotifier(source, options.schema, runtime);
  const listener = new WakeListener(listeningClient, options.schema, pollMs, runtime);
  const cursors = new ClaimCursors(source, schema, runtime, () => listener.wake());
  const commits = commitPlaces(size);
  const noConnection = () =>
    new PostgresInboxError(
      `No connection was free for context.commit within ${connectTimeoutMs} ms: ${commits} others use them. ` +
        'Keep their work short, or raise "poolSize".',
      null,
    );
  // Without it, handlers that commit could hold every connection of the pool, and receives would find none.
  const semaphore = new Semaphore(commits, connectTimeoutMs, noConnection, runtime);
  return {
    source,
    receives,
    notifier,
    listener,
    claims: new ClaimStatement(source, schema, cursors),
    nextDue: new NextDueStatement(source, schema, cursors),
    settlements: new SettleQueue((all) => settle.settle(all), statementTimeoutMs, runtime),
    commits: new CommitTransaction(source, schema, semaphore, runtime),
    pruning: new Pruning(source, schema),
    stranded: new StrandedKeys(source, schema),
    async close() {
      await endWithin(connectTimeoutMs, runtime, listener.close());
      await receives.drained();
      await notifier.flush();
      await end();
    },
  };
}

/** How many connections of the pool `context.commit` may use: the others are for receives, claims and settlements. */
function commitPlaces(poolSize: number): number {
  return Math.max(1, poolSize - (poolSize >= 12 ? 4 : 2));
}
