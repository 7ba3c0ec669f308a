import { ModuleLogger } from '../../../errors/module-log.js';
import { optionsInvalid } from '../../../errors/option-checks.js';
import { Backoff, STORE_BACKOFF } from '../../../runtime/backoff.js';
import { abortableDelay } from '../../../runtime/deadline.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ConnectionSource } from './connection-source.js';
import { PostgresInboxError } from './database-connection.js';

/** SQL states of a server that starts (57P03) or has no free connection (53300). */
const NOT_READY = /^(57P03|53300)$/;

/**
 * Checks the server before anything is stored. If it cannot be reached, tries again for `startTimeoutMs`: a deployment may
 * start the database and the application at the same time. Returns the default
 * isolation level of the database.
 *
 * @throws PaymentsError `inbox_unavailable`, with the cause and the options that may be wrong; `options_invalid`
 */
export async function reachServer(
  source: Pick<ConnectionSource, 'query'>,
  startTimeoutMs: number,
  runtime: PaymentsRuntime,
): Promise<string> {
  const logger = new ModuleLogger('PostgresInbox');
  const end = runtime.monotonic() + startTimeoutMs;
  const backoff = new Backoff(runtime, STORE_BACKOFF);
  for (let tries = 1; ; tries += 1) {
    try {
      return await checkServer(source, logger);
    } catch (error) {
      if (!(error instanceof PostgresInboxError)) throw error;
      const waitMs = backoff.nextMs();
      const mayRecover = error.sqlState === null || NOT_READY.test(error.sqlState);
      if (!mayRecover || runtime.monotonic() + waitMs > end) throw notReached(error, tries);
      if (tries === 1) {
        logger.warn(
          `The application waits up to ${startTimeoutMs} ms for the database of the inbox ("startTimeoutMs").`,
        );
      }
      await abortableDelay(waitMs, runtime, new AbortController().signal);
    }
  }
}

async function checkServer(
  source: Pick<ConnectionSource, 'query'>,
  logger: ModuleLogger,
): Promise<string> {
  const [row] = await source.query(`
    SELECT current_setting('server_version_num')::integer AS version,
           current_setting('server_encoding') AS encoding,
           current_setting('default_transaction_isolation') AS isolation,
           current_setting('fsync') AS fsync`);
  const { version, encoding, isolation, fsync } = row!;
  if (Number(version) < 130_000) {
    throw optionsInvalid(
      'postgresInbox needs PostgreSQL 13 or later; this server is older. Upgrade it.',
    );
  }
  if (encoding !== 'UTF8') {
    throw optionsInvalid(
      `postgresInbox needs a database whose encoding is UTF8; this one has ${encoding}, which cannot store every ` +
        `event. Create one with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0`,
    );
  }
  if (fsync === 'off') {
    logger.warn(
      'The PostgreSQL server runs with fsync off: a power failure may lose payment events that were acknowledged.',
    );
  }
  return isolation!;
}

function notReached({ message, sqlState }: PostgresInboxError, tries: number): PostgresInboxError {
  const times = tries === 1 ? '1 try' : `${tries} tries`;
  return new PostgresInboxError(
    `${message}. The application gives up after ${times} and does not start. Check that the database is running, and that ` +
      '"connectionString" or "pool" of postgresInbox (without either, PGHOST and the other variables of PostgreSQL) is right. ' +
      'To wait longer for a database that starts later, raise "startTimeoutMs".',
    sqlState,
  );
}
