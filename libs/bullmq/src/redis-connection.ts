import { Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { PaymentsError } from 'nestjs-payments';
import { isClient } from './bullmq-options.js';
import type { BullMQConnection } from './bullmq-options.js';

/** Milliseconds without a reply to a command after which a connection is cut, such as one of a stopped server. */
const SOCKET_TIMEOUT_MS = 15_000;

/**
 * Connects to Redis. The client does not connect again after it has lost its connection, so that no command waits, and the
 * settings are checked on each connection. Its commands then reject.
 */
export async function connectRedis(connection: BullMQConnection): Promise<Redis> {
  const given: RedisOptions =
    typeof connection === 'string' ? {} : isClient(connection) ? connection.options : connection;
  const { socketTimeout = SOCKET_TIMEOUT_MS } = given;
  const options: RedisOptions & { replyMapping: 'legacy' } = {
    ...given,
    socketTimeout,
    retryStrategy: null,
    // After a failover, the next connection reaches the new master.
    reconnectOnError: ({ message }) => message.includes('READONLY'),
    maxRetriesPerRequest: null,
    commandTimeout: undefined,
    lazyConnect: true,
    replyMapping: 'legacy',
  };
  const client =
    typeof connection === 'string' ? new Redis(connection, options) : new Redis(options);
  let reason: unknown;
  client.on('error', (error) => (reason = error));
  try {
    await client.connect();
    return client;
  } catch (error) {
    client.disconnect();
    throw unreachable(reason ?? error);
  }
}

function unreachable(error: unknown): Error {
  return new Error(`Redis cannot be reached: ${reasonOf(error)}.`);
}

/** For each setting of Redis, its safe values, whether others are only logged, and the effect of others. */
const SETTINGS = [
  ['appendonly', 'yes', true, 'a restart of Redis loses events'],
  ['maxmemory-policy', 'noeviction', true, 'Redis deletes events if its memory is full'],
  ['appendfsync', 'always', false, 'a power failure loses the events of the last second or longer'],
  ['no-appendfsync-on-rewrite', 'no', false, 'a power failure during a rewrite loses events'],
] as const;

/**
 * Checks the settings of Redis that decide whether an accepted event can be lost.
 *
 * @param warn logs a line
 * @throws PaymentsError `engine_unsafe`, unless `lenient` is `true`.
 */
export async function checkSettings(
  client: Redis,
  lenient: boolean,
  warn: (line: string) => void,
): Promise<void> {
  const report = (unsafe: boolean, text: string): void => {
    if (unsafe && !lenient) throw new PaymentsError('engine_unsafe', text);
    warn(text);
  };
  for (const [name, safe, unsafe, effect] of SETTINGS) {
    let value: string | undefined;
    try {
      [, value] = await client.config('GET', name);
    } catch (error) {
      if (client.status !== 'ready') throw error;
    }
    if (value === undefined) {
      return report(
        true,
        `The setting "${name}" of Redis could not be read with CONFIG GET. Allow this user CONFIG GET. If your provider ` +
          'does not allow it, check that Redis writes an append-only file and that "maxmemory-policy" is "noeviction", ' +
          "and use bullMQ({ setup: 'warn' }).",
      );
    }
    if (value !== safe) {
      report(unsafe, `"${name}" of Redis is "${value}", so ${effect}. Set "${name} ${safe}".`);
    }
  }
}

/**
 * Returns the reason of an error of ioredis or BullMQ for a message. The error itself is never passed on, because its
 * field `command` contains the arguments of the command, such as the body of an event. Messages of BullMQ contain ids
 * of jobs, which are left out.
 */
export function reasonOf(error: unknown): string {
  const { errors, message } = error as { errors?: readonly unknown[]; message?: unknown };
  // The message of the error for several addresses of a host is empty.
  if (message === '' && errors?.[0] !== undefined) return reasonOf(errors[0]);
  return String(message)
    .replace(/\bjob\b.*/is, 'a job')
    .replace(/\.$/, '');
}
