import type { Client, Pool } from 'pg';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ResolvedPostgresOptions } from '../postgres-options.js';
import { loadDriver } from './driver-loader.js';

/** How long a transaction on the inbox's own pool may be idle. Its process hangs then. */
const IDLE_IN_TRANSACTION_MS = 60_000;
const KEEP_ALIVE_MS = 10_000;

/** The application's pool or a new one, how many connections it makes, and one more connection to listen on. */
export async function openPool(
  options: ResolvedPostgresOptions,
): Promise<{ pool: Pool; size: number; listeningClient: () => Client }> {
  const pool = options.pool ?? (await ownPool(options));
  const size = (pool as { options?: { max?: number } }).options?.max ?? options.poolSize;
  return { pool, size, listeningClient: () => clientOf(pool) };
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

/** With the options and the driver of the pool. The application may have another version of the driver. */
function clientOf(pool: Pool): Client {
  const { Client, options } = pool as unknown as {
    Client: new (options: unknown) => Client;
    options: object;
  };
  return new Client(options);
}

/** Waits for `end`, for a bounded time: a handler may keep its connection, or the network may be silent. */
export async function endWithin(
  ms: number,
  runtime: Pick<PaymentsRuntime, 'schedule'>,
  end: Promise<void>,
): Promise<void> {
  let cancel = (): void => {};
  const late = new Promise<void>((resolve) => {
    cancel = runtime.schedule(ms, resolve);
  });
  await Promise.race([end, late]);
  cancel();
}
