import { Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { reportUnsafe } from 'nestjs-payments/engines';
import type { engineLog } from 'nestjs-payments/engines';
import { isClient } from './bullmq-options.js';
import type { BullMQConnection, ResolvedBullMQOptions } from './bullmq-options.js';

/**
 * The client closes its connection if Redis does not reply to a command within this many milliseconds, for example
 * because the server is suspended.
 */
const SOCKET_TIMEOUT_MS = 15_000;

/**
 * Connects to Redis. If the client loses its connection, it does not connect again, and its commands reject. Therefore
 * no command waits for a connection. The next call of the adapter connects again and checks the settings of Redis
 * again.
 */
export async function connectRedis(connection: BullMQConnection): Promise<Redis> {
  const given: RedisOptions =
    typeof connection === 'string' ? {} : isClient(connection) ? connection.options : connection;
  const { socketTimeout = SOCKET_TIMEOUT_MS } = given;
  const options: RedisOptions & { replyMapping: 'legacy' } = {
    ...given,
    socketTimeout,
    retryStrategy: null,
    // Lose a connection to a server that has become read-only. After a failover, the next connection reaches the new
    // master.
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

/** For each setting of Redis: its name, its safe value, and the effect of other values. */
const SETTINGS = [
  ['appendonly', 'yes', 'a restart of Redis loses events'],
  ['maxmemory-policy', 'noeviction', 'Redis deletes events if its memory is full'],
  ['appendfsync', 'always', 'a power failure loses the events of the last second or longer'],
  ['no-appendfsync-on-rewrite', 'no', 'a power failure during a rewrite loses events'],
] as const;

/**
 * Checks the settings of Redis that decide whether Redis can lose an event that it has accepted.
 *
 * @throws PaymentsError `engine_unsafe`, unless `setup` is `warn`.
 */
export async function checkSettings(
  client: Redis,
  options: ResolvedBullMQOptions,
  log: ReturnType<typeof engineLog>,
): Promise<void> {
  for (const [name, safe, effect] of SETTINGS) {
    let value: string | undefined;
    try {
      [, value] = await client.config('GET', name);
    } catch (error) {
      if (client.status !== 'ready') throw error;
    }
    if (value === safe) continue;
    const problem =
      value === undefined
        ? 'The settings of Redis could not be read with CONFIG GET. Allow this user CONFIG GET, or ask your provider for ' +
          `the settings ${SETTINGS.map(([setting, right]) => `"${setting} ${right}"`).join(', ')}.`
        : `"${name}" of Redis is "${value}", so ${effect}. Set "${name} ${safe}".`;
    reportUnsafe(`${problem} To accept this risk, use bullMQ({ setup: 'warn' }).`, options, log);
    if (value === undefined) return;
  }
}

/**
 * Returns the reason of an error of ioredis or BullMQ, to be part of another message. The error itself is never passed
 * on, because its field `command` contains the arguments of the command, such as the body of an event. The reason does
 * not contain the ids of jobs that messages of BullMQ contain.
 */
export function reasonOf(error: unknown): string {
  const { errors, message } = error as { errors?: readonly unknown[]; message?: unknown };
  // If a host has several addresses, the error contains the errors of all addresses, and its own message is empty.
  if (message === '' && errors?.[0] !== undefined) return reasonOf(errors[0]);
  return String(message)
    .replace(/\bjob\b.*/is, 'a job')
    .replace(/\.$/, '');
}
