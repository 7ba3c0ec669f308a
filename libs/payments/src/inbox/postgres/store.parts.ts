import type { Client, Pool } from 'pg';
import type { PaymentsRuntime } from '../../payments.runtime.js';
import { ActivityMinutes } from './activity.minutes.js';
import { CommitGate } from './commit.gate.js';
import { ConnectionSource } from './connection.source.js';
import { DeliveryClaims } from './delivery.claims.js';
import { DeliverySettlement } from './delivery.settlement.js';
import { loadDriver } from './driver.loader.js';
import { EventReader } from './event.reader.js';
import { InboxPruner } from './inbox.pruner.js';
import { OperatorCommands } from './operator.commands.js';
import type { ResolvedPostgresOptions } from './postgres.options.js';
import { ReceiptBatch } from './receipt.batch.js';
import { ReceiptQueue } from './receipt.queue.js';
import { migrate, quoted } from './schema.migrator.js';
import { checkServer } from './server.check.js';
import { SettlementTransaction } from './settlement.transaction.js';
import { StatsReader } from './stats.reader.js';
import { WakeListener } from './wake.listener.js';
import { WakeNotifier } from './wake.notifier.js';

/** How long an open transaction of ours may do nothing: its process hangs, and holds a delivery's row. */
const IDLE_IN_TRANSACTION_MS = 60_000;
/** Connections of the pool that `context.commit` leaves to receiving, claiming and settling. */
const KEPT_FREE = 2;
const KEEP_ALIVE_MS = 10_000;

/** What an open store is made of. */
export interface StoreParts {
  readonly receipts: ReceiptQueue;
  readonly claims: DeliveryClaims;
  readonly settlement: DeliverySettlement;
  readonly transactions: SettlementTransaction;
  readonly reader: EventReader;
  readonly stats: StatsReader;
  readonly operator: OperatorCommands;
  readonly pruner: InboxPruner;
  readonly minutes: ActivityMinutes;
  readonly notifier: WakeNotifier;
  readonly listener: WakeListener;
  close(): Promise<void>;
}

/** Connects, looks at the server, sets up the schema and puts the parts together. */
export async function openParts(
  options: ResolvedPostgresOptions,
  runtime: PaymentsRuntime,
): Promise<StoreParts> {
  const { connectTimeoutMs } = options;
  const pool = options.pool ?? (await ownPool(options));
  const source = new ConnectionSource(pool, options, runtime);
  const end = async (): Promise<void> => {
    source.close();
    if (options.pool === undefined) await within(connectTimeoutMs, runtime, pool.end());
  };
  try {
    await checkServer(source);
    await migrate(source, options.schema);
  } catch (error) {
    await end();
    throw error;
  }
  const schema = quoted(options.schema);
  const batch = new ReceiptBatch(source, schema);
  const receipts = new ReceiptQueue((events) => batch.store(events));
  const notifier = new WakeNotifier(source, options.schema, runtime);
  const listener = new WakeListener(
    () => listeningClient(pool),
    options.schema,
    options.pollMs,
    runtime,
  );
  const size = (pool as { options?: { max?: number } }).options?.max ?? options.poolSize;
  const gate = new CommitGate(Math.max(1, size - KEPT_FREE), connectTimeoutMs, runtime);
  return {
    receipts,
    notifier,
    listener,
    claims: new DeliveryClaims(source, schema),
    settlement: new DeliverySettlement(source, schema),
    transactions: new SettlementTransaction(source, schema, gate, runtime),
    reader: new EventReader(source, schema),
    stats: new StatsReader(source, schema),
    operator: new OperatorCommands(source, schema),
    pruner: new InboxPruner(source, schema),
    minutes: new ActivityMinutes(source, schema),
    async close() {
      await within(connectTimeoutMs, runtime, listener.close());
      await receipts.drained();
      await notifier.flush();
      await end();
    },
  };
}

async function ownPool(options: ResolvedPostgresOptions): Promise<Pool> {
  const { Pool } = await loadDriver();
  return new Pool({
    connectionString: options.connectionString,
    max: options.poolSize,
    connectionTimeoutMillis: options.connectTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // For the statements of context.commit, which are the application's own.
    query_timeout: options.statementTimeoutMs + 1000,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    fallback_application_name: 'nestjs-payments',
  });
}

/** With the pool's own options and the pool's own driver, of which an application may have another. */
function listeningClient(pool: Pool): Client {
  const { Client, options } = pool as unknown as {
    Client: new (options: unknown) => Client;
    options: object;
  };
  return new Client(options);
}

/** Waits for an end that may not come: a handler keeps its connection, or the network has fallen silent. */
async function within(ms: number, runtime: PaymentsRuntime, end: Promise<void>): Promise<void> {
  let cancel = (): void => {};
  const late = new Promise<void>((resolve) => {
    cancel = runtime.schedule(ms, resolve);
  });
  await Promise.race([end, late]);
  cancel();
}
