import { Redis } from 'ioredis';
import type { RedisOptions } from 'ioredis';
import { isClient } from './bullmq-options.js';
import type { BullMQConnection } from './bullmq-options.js';

/** Milliseconds without a reply to a command after which a connection is cut, such as one of a stopped server. */
const SOCKET_TIMEOUT_MS = 15_000;

/**
 * A connection to Redis. Each time it is established, the settings are checked before it is used, because the server
 * may have been restarted with other settings, or another server may have taken its place.
 */
export class RedisConnection {
  #client: Redis | undefined;
  #connecting: Promise<void> | undefined;
  #checking: Promise<void> | undefined;

  constructor(
    private readonly connect: () => Redis,
    private readonly check: (client: Redis) => Promise<void>,
    private readonly onError: (error: Error) => void,
  ) {}

  /**
   * Resolves with the client once it is connected and checked. Rejects at once if the connection was lost and the client
   * waits before it connects again.
   *
   * @throws PaymentsError `engine_unsafe`.
   */
  async ready(): Promise<Redis> {
    if (this.#client?.status === 'end') this.#client = undefined;
    const client = (this.#client ??= this.#create());
    await (this.#connecting ??= untilReady(client).finally(() => (this.#connecting = undefined)));
    const checking = (this.#checking ??= this.check(client));
    try {
      await checking;
    } catch (error) {
      if (this.#checking === checking) this.#checking = undefined;
      throw error;
    }
    return client;
  }

  close(): void {
    if (this.#client !== undefined) endClient(this.#client);
    this.#client = undefined;
  }

  #create(): Redis {
    const client = this.connect();
    client.on('error', this.onError);
    client.on('close', () => (this.#checking = undefined));
    return client;
  }
}

/** Returns a client for `publish`, which fails at once while Redis is away. */
export function connectRelay(connection: BullMQConnection): Redis {
  return create(connection, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
}

/**
 * Returns a client for a worker of BullMQ, whose commands wait until Redis is back. Their number is limited by
 * `maxInProgress`.
 */
export function connectSource(connection: BullMQConnection): Redis {
  return create(connection, { enableOfflineQueue: true, maxRetriesPerRequest: null });
}

function create(connection: BullMQConnection, role: RedisOptions): Redis {
  const given: RedisOptions =
    typeof connection === 'string' ? {} : isClient(connection) ? connection.options : connection;
  const { socketTimeout = SOCKET_TIMEOUT_MS } = given;
  const options: RedisOptions & { replyMapping: 'legacy' } = {
    ...given,
    ...role,
    socketTimeout,
    commandTimeout: undefined,
    lazyConnect: false,
    replyMapping: 'legacy',
  };
  return typeof connection === 'string' ? new Redis(connection, options) : new Redis(options);
}

/**
 * Ends the connection of a client. While a client waits before it connects again, `disconnect()` of ioredis leaves its
 * commands pending for ever. A last attempt to connect makes them fail.
 */
export function endClient(client: {
  readonly status: string;
  connect(): Promise<unknown>;
  disconnect(): unknown;
}): void {
  client.disconnect();
  if (client.status !== 'reconnecting') return;
  void client.connect().then(
    () => client.disconnect(),
    () => {},
  );
}

/** Resolves when the client is ready, and rejects if this attempt to connect fails or none is in progress. */
async function untilReady(client: Redis): Promise<void> {
  if (client.status === 'ready') return;
  if (client.status !== 'connecting' && client.status !== 'connect') {
    throw new Error('There is no connection to Redis. The client connects again by itself.');
  }
  let reason = 'the connection was closed';
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const failed = (error: Error): void => void (reason = reasonOf(error));
  const closed = (): void => reject(new Error(`Redis cannot be reached: ${reason}.`));
  client.once('ready', resolve).on('error', failed).once('close', closed).once('end', closed);
  try {
    await promise;
  } finally {
    client.off('ready', resolve).off('error', failed).off('close', closed).off('end', closed);
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
