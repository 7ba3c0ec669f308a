import { Logger } from '@nestjs/common';
import { optionsInvalid } from '../../../errors/options-invalid.js';
import type { ConnectionSource } from './connection-source.js';

/** Checks the server before anything is stored. */
export async function checkServer(source: ConnectionSource): Promise<void> {
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
  if (isolation !== 'read committed') source.isolateExplicitly();
  if (fsync === 'off') {
    new Logger('PostgresInbox').warn(
      'The PostgreSQL server runs with fsync off: a power failure may lose payment events that were acknowledged.',
    );
  }
}
