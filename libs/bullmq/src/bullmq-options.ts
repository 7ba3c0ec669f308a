import type { Redis, RedisOptions } from 'ioredis';
import {
  checkFields,
  ENGINE_CHECKS,
  matching,
  mustBe,
  optionsInvalid,
  SERVICES,
} from 'nestjs-payments/engines';
import type { EngineOptions, OptionCheck } from 'nestjs-payments/engines';

/**
 * How to reach Redis: a URL such as `rediss://user:password@redis.internal:6379`, the options of ioredis, or the
 * application's own client of ioredis.
 */
export type BullMQConnection = string | RedisOptions | Redis;

/** Options of {@link bullMQ}. Only `connection` is required. */
export interface BullMQOptions extends EngineOptions {
  /**
   * How to reach Redis. The adapter always opens connections of its own. If you pass a client, the adapter uses only
   * the options of this client. Redis Cluster and the option `keyPrefix` are not supported. The adapter sets the
   * options that decide what happens while Redis cannot be reached: `retryStrategy`, `reconnectOnError`,
   * `maxRetriesPerRequest`, `commandTimeout` and `lazyConnect`.
   */
  connection: BullMQConnection;
  /**
   * The first part of the names of the queues. Each worker service has a queue of its own, because only one worker can
   * take a job of BullMQ. For example, the worker service `ledger` takes its events from the queue `payments.ledger`. 1
   * to 64 of `a-z A-Z 0-9 _ -`. Default `payments`.
   */
  queue?: string;
  /**
   * For `relay`: worker services that get each event even if they have never started. All worker services that have
   * started before get each event in any case, because they are registered in Redis. Default: none.
   */
  services?: readonly string[];
}

/** {@link BullMQOptions} with all defaults. */
export type ResolvedBullMQOptions = ReturnType<typeof resolveBullMQOptions>;

const queue = matching('1 to 64 of A-Z, a-z, 0-9, _ and -', /^[\w-]{1,64}$/);

/**
 * Checks the options and adds the defaults. The result is frozen.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function resolveBullMQOptions(options: BullMQOptions) {
  return checkFields('bullMQ', options, {
    ...ENGINE_CHECKS,
    connection: checkConnection,
    queue: (name, value = 'payments') => queue(name, value),
    services: SERVICES,
  });
}

/** Whether the connection is a client of ioredis. */
export function isClient(connection: object): connection is Redis {
  return 'duplicate' in connection;
}

const checkConnection: OptionCheck<BullMQConnection> = (name, value) => {
  if (typeof value === 'string' && URL.canParse(value) && /^rediss?:\/\//i.test(value)) {
    return value;
  }
  if (typeof value !== 'object' || value === null) {
    throw mustBe(name, 'a URL (redis://… or rediss://…), or options or a client of ioredis', value);
  }
  const { isCluster, keyPrefix } = isClient(value)
    ? { isCluster: value.isCluster, keyPrefix: value.options?.keyPrefix }
    : (value as RedisOptions & { isCluster?: boolean });
  if (isCluster === true || keyPrefix) {
    throw optionsInvalid(
      `"${name}" must be without a cluster and without "keyPrefix", because BullMQ would lose events or fail. Use the ` +
        'option "queue" to separate applications.',
    );
  }
  return value;
};
