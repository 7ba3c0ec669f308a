import type { Redis, RedisOptions } from 'ioredis';
import { PaymentsError } from 'nestjs-payments';

/**
 * How to reach Redis: a URL such as `rediss://user:password@redis.internal:6379`, the options of ioredis, or the
 * application's own client of ioredis.
 */
export type BullMQConnection = string | RedisOptions | Redis;

/** Options of {@link bullMQ}. Only `connection` is required. */
export interface BullMQOptions {
  /**
   * How to reach Redis. The adapter opens connections of its own: with a client of the application, it uses only the
   * options of that client. Redis Cluster and the option `keyPrefix` are not supported. The adapter sets the options
   * that decide what happens while Redis is away: `enableOfflineQueue`, `maxRetriesPerRequest`, `commandTimeout` and
   * `lazyConnect`.
   */
  connection: BullMQConnection;
  /**
   * The common part of the names of the queues. Each service has a queue of its own, because a job of BullMQ is taken
   * once: service `ledger` takes from the queue `payments.ledger`. 1 to 64 of `a-z A-Z 0-9 _ -`. Default `payments`.
   */
  queue?: string;
  /**
   * For `relay`: services that get each event even if they have never started. All services that have started get each
   * event too, because they are registered in Redis. At most 100 names, each 1 to 64 of `a-z A-Z 0-9 _ -`. Default:
   * none.
   */
  services?: readonly string[];
  /**
   * For `source`: the name of this service. All processes of a service share the events. 1 to 64 of `a-z A-Z 0-9 _ -`.
   * No default; without a name, `consume` rejects.
   */
  service?: string;
  /**
   * What happens at the start, and after each reconnect.
   *
   * - `create` checks the settings of Redis, and registers `service`. An unsafe setting is an error.
   * - `check` is the same, but a service that is not registered is an error.
   * - `warn` is the same as `create`, but an unsafe setting, or one that cannot be read, is a warning in the log. Use
   *   this for a managed Redis that does not allow `CONFIG GET`.
   *
   * Default `create`.
   */
  setup?: 'create' | 'check' | 'warn';
  /** For `source`: the maximum number of messages that are being stored in this process. 1 to 10,000. Default 100. */
  maxInProgress?: number;
  /**
   * For `source`: whether the module checks the signature of each message. `false` trusts everyone who can write to
   * Redis. Default `true`.
   */
  verify?: boolean;
}

/** {@link BullMQOptions} with all defaults. */
export type ResolvedBullMQOptions = ReturnType<typeof resolveBullMQOptions>;

const SETUPS = ['create', 'check', 'warn'] as const;
const NAMES = [
  'connection',
  'queue',
  'services',
  'service',
  'setup',
  'maxInProgress',
  'verify',
] as const satisfies readonly (keyof BullMQOptions)[];

/**
 * Checks the options and adds the defaults. The result is frozen.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function resolveBullMQOptions(options: BullMQOptions) {
  if (typeof options !== 'object' || options === null) {
    throw invalid('bullMQ takes an object of options, such as { connection: "redis://…" }.');
  }
  for (const field of Object.keys(options)) {
    if (!NAMES.some((name) => name === field)) {
      throw invalid(`there is no option "bullMQ.${field}". The options are ${NAMES.join(', ')}.`);
    }
  }
  const { connection, queue = 'payments', services = [], service } = options;
  const { setup = 'create', maxInProgress = 100, verify = true } = options;
  checkConnection(connection);
  checkName('queue', queue);
  if (service !== undefined) checkName('service', service);
  if (!Array.isArray(services) || services.length > 100) {
    throw mustBe('services', 'an array of at most 100 names of services', services);
  }
  for (const name of services) checkName('services[]', name);
  if (!SETUPS.includes(setup)) {
    throw mustBe('setup', "'create' (default), 'check' or 'warn'", setup);
  }
  if (!Number.isSafeInteger(maxInProgress) || maxInProgress < 1 || maxInProgress > 10_000) {
    throw mustBe('maxInProgress', 'a whole number of messages from 1 to 10000', maxInProgress);
  }
  if (typeof verify !== 'boolean') throw mustBe('verify', 'true or false', verify);
  return Object.freeze({
    connection,
    queue,
    services: Object.freeze([...services]),
    service,
    setup,
    maxInProgress,
    verify,
  });
}

/** Whether the connection is a client of ioredis. */
export function isClient(connection: BullMQConnection): connection is Redis {
  return typeof connection === 'object' && 'duplicate' in connection;
}

function checkConnection(connection: unknown): asserts connection is BullMQConnection {
  const expected = 'a URL (redis://… or rediss://…), options of ioredis or a client of ioredis';
  if (typeof connection === 'string') {
    if (URL.canParse(connection) && /^rediss?:\/\//i.test(connection)) return;
    throw mustBe('connection', expected, connection);
  }
  if (typeof connection !== 'object' || connection === null || Array.isArray(connection)) {
    throw mustBe('connection', expected, connection);
  }
  const client = connection as Partial<Redis> & RedisOptions;
  const isInstance = 'duplicate' in client;
  if (isInstance && (client.isCluster === true || typeof client.defineCommand !== 'function')) {
    throw invalid(
      '"bullMQ.connection" must be a client of the class Redis of ioredis. Redis Cluster and other clients are not ' +
        'supported. Use a URL or options of ioredis instead.',
    );
  }
  const { keyPrefix } = isInstance ? client.options! : client;
  if (keyPrefix !== undefined && keyPrefix !== '') {
    throw invalid(
      '"bullMQ.connection.keyPrefix" must be left out, because BullMQ does not support it. Use the option "queue" to ' +
        'separate applications.',
    );
  }
}

function checkName(option: string, name: unknown): void {
  if (typeof name === 'string' && /^[\w-]{1,64}$/.test(name)) return;
  throw mustBe(option, '1 to 64 of a-z, A-Z, 0-9, _ and -', name);
}

function mustBe(option: string, expected: string, value: unknown): PaymentsError {
  return invalid(`"bullMQ.${option}" must be ${expected}; it is ${shown(value)}.`);
}

/** Formats a value without the content of a text, because it may be a URL with a password. */
function shown(value: unknown): string {
  if (typeof value === 'string') return `a text of ${value.length} characters`;
  if (typeof value === 'object' && value !== null) {
    return Array.isArray(value) ? `an array of ${value.length}` : 'an object';
  }
  return typeof value === 'function' || typeof value === 'symbol'
    ? `a ${typeof value}`
    : String(value);
}

function invalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `PaymentsModule: ${message}`);
}
