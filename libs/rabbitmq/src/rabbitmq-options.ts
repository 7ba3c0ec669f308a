import { PaymentsError } from 'nestjs-payments';
import type { ConnectionOptions } from 'rabbitmq-client';

/** The options of `rabbitmq-client` that {@link RabbitMQOptions.connection} takes. They override the URL. */
export interface RabbitMQConnection extends Pick<
  ConnectionOptions,
  'hostname' | 'vhost' | 'username' | 'password' | 'connectionName'
> {
  /** Port of the server, 1 to 65,535. Default 5672, or 5671 with TLS. */
  port?: number;
  /**
   * The nodes of a cluster, such as `['rabbit-1:5672', 'rabbit-2:5672']`. Each connection is made to the first node that
   * answers.
   */
  hosts?: string[];
  /** `true`, or options of Node's `tls.connect()` such as `{ ca }`. Default: TLS if the URL begins with `amqps:`. */
  tls?: ConnectionOptions['tls'];
  /**
   * Seconds between two heartbeats. A connection that is silent for twice this time is lost. 1 to 300. Default 15. The
   * query parameter `heartbeat` of the URL overrides it.
   */
  heartbeat?: number;
  /** Milliseconds to wait for a connection. 100 to 60,000. Default 5,000. */
  connectionTimeout?: number;
  /**
   * The largest frame in bytes, which also limits the headers of a message. 8,192 to 131,072, and at most the setting
   * `frame_max` of the server. Default 8,192.
   */
  frameMax?: number;
}

/** Options of {@link rabbitMQ}. `exchange` and one of `url` and `connection` are required. */
export interface RabbitMQOptions {
  /**
   * The URL of the server with user, password and virtual host, such as `amqps://shop:secret@rabbit.internal/shop`.
   * Without a path, the virtual host is `/`.
   */
  url?: string;
  /** Options of the connection that a URL cannot contain, or that override it. */
  connection?: RabbitMQConnection;
  /**
   * The exchange to which the gateway publishes: a durable topic exchange. The routing key of a message is the type of
   * its event. 1 to 100 of `A-Z a-z 0-9 . _ -`; it must not begin with `amq.`.
   */
  exchange: string;
  /**
   * The name of the worker service. Its queue is `<exchange>.<service>`, its dead letters are in
   * `<exchange>.<service>.dead`. All processes of a service have the same name and share its messages. 1 to 100 of
   * `A-Z a-z 0-9 _ -`; not `dead`. Required by `source`.
   */
  service?: string;
  /**
   * The names of the worker services whose queues the gateway creates or checks too. A queue takes only messages that are
   * published after it was created, so name every service here, and no event is lost before its first process starts.
   * Default: none.
   */
  services?: readonly string[];
  /**
   * `'create'` creates exchange and queues if they are missing, and checks their settings. `'check'` creates nothing. Both
   * throw `engine_unsafe` if something is missing or a setting loses events. `'warn'` checks, logs and continues. Default
   * `'create'`.
   */
  setup?: 'create' | 'check' | 'warn';
  /** The maximum number of messages that a process stores or holds for a retry at a time. 1 to 10,000. Default 100. */
  maxInProgress?: number;
  /**
   * Whether the worker service checks the signature of each message. `false` trusts everyone who can write to the queue.
   * Default `true`.
   */
  verify?: boolean;
}

/** {@link RabbitMQOptions} with all defaults. */
export type ResolvedRabbitMQOptions = ReturnType<typeof resolveOptions>;

type Check<T> = (name: string, value: unknown) => T;
type Checks<T> = { readonly [K in keyof T]-?: Check<unknown> };

const CONNECTION = {
  hostname: text('the name of a host'),
  port: whole(1, 65_535),
  vhost: text('the name of a virtual host'),
  username: text('the name of a user'),
  password: text('a text'),
  connectionName: text('a text'),
  hosts: list('one or more texts such as rabbit-1:5672', /^[^\s:/]+(:\d{1,5})?$/, 1),
  tls: (name, value) => {
    if (value !== undefined && typeof value !== 'boolean' && !isObject(value)) {
      throw mustBe(name, 'true, false or an object with options of tls.connect()');
    }
  },
  heartbeat: whole(1, 300),
  connectionTimeout: whole(100, 60_000),
  frameMax: whole(8192, 131_072),
} satisfies Checks<RabbitMQConnection>;

const SERVICE = /^(?!dead$)[\w-]{1,100}$/;
const SERVICE_RULE = '1 to 100 of A-Z, a-z, 0-9, _ and -, and not "dead"';
const OPTIONS = {
  url: checkUrl,
  connection: (name, value) => value !== undefined && checkFields(name, value, CONNECTION),
  exchange: (name, value) => {
    if (typeof value !== 'string' || !/^(?!amq\.)[\w.-]{1,100}$/.test(value)) {
      const rule = '1 to 100 of A-Z, a-z, 0-9, ".", _ and -, and must not begin with "amq."';
      throw mustBe(name, rule);
    }
  },
  service: text(SERVICE_RULE, SERVICE),
  services: list(`a list of names of services, each ${SERVICE_RULE}`, SERVICE, 0),
  setup: text("'create', 'check' or 'warn'", /^(create|check|warn)$/),
  maxInProgress: whole(1, 10_000),
  verify: (name, value) => {
    if (value !== undefined && typeof value !== 'boolean') throw mustBe(name, 'true or false');
  },
} satisfies Checks<RabbitMQOptions>;

/**
 * Checks the options and adds the defaults. No message contains the value of an option, because it may be a secret.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function resolveOptions(options: RabbitMQOptions) {
  checkFields('options', options, OPTIONS);
  const { url, connection = {}, service, services = [] } = options;
  if (url === undefined && options.connection === undefined) {
    throw optionsInvalid('"url" or "connection" must be set, such as amqp://user:password@host.');
  }
  const { setup = 'create', maxInProgress = 100, verify = true, exchange } = options;
  return Object.freeze({
    connection: Object.freeze({
      ...connection,
      heartbeat: connection.heartbeat ?? 15,
      connectionTimeout: connection.connectionTimeout ?? 5000,
      frameMax: connection.frameMax ?? 8192,
      ...(url !== undefined && { url }),
    }),
    exchange,
    service,
    services: Object.freeze([
      ...new Set(service === undefined ? services : [service, ...services]),
    ]),
    setup,
    maxInProgress,
    verify,
  });
}

/** Creates the error for an option that is missing or wrong. */
export function optionsInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `rabbitMQ: ${message}`);
}

function mustBe(name: string, expected: string): PaymentsError {
  return optionsInvalid(`"${name}" must be ${expected}.`);
}

function checkFields(
  name: string,
  given: unknown,
  checks: Readonly<Record<string, Check<unknown>>>,
) {
  if (!isObject(given)) throw mustBe(name, 'an object');
  for (const field of Object.keys(given)) {
    if (Object.hasOwn(checks, field)) continue;
    const names = Object.keys(checks).join(', ');
    throw optionsInvalid(`there is no option "${field}" in "${name}". The options are ${names}.`);
  }
  for (const [field, check] of Object.entries(checks)) check(field, given[field]);
}

function checkUrl(name: string, value: unknown): void {
  if (value === undefined) return;
  // The errors of URL and decodeURIComponent contain the password, so they are no cause of the error.
  const url = typeof value === 'string' ? URL.parse(value) : null;
  const valid =
    url !== null &&
    ['amqp:', 'amqps:'].includes(url.protocol) &&
    [url.username, url.password, url.pathname].every(isEncoded);
  if (!valid || url.hostname === '' || url.username === '') {
    const hint = 'Percent-encode the special characters in user and password';
    throw mustBe(name, `an URL such as amqps://user:password@host/vhost. ${hint}`);
  }
}

function isEncoded(part: string): boolean {
  try {
    decodeURIComponent(part);
    return true;
  } catch {
    return false;
  }
}

function text(expected: string, pattern = /^[^\0]+$/): Check<void> {
  return (name, value) => {
    if (value === undefined || (typeof value === 'string' && pattern.test(value))) return;
    throw mustBe(name, expected);
  };
}

function list(expected: string, pattern: RegExp, min: number): Check<void> {
  return (name, value) => {
    const valid =
      Array.isArray(value) &&
      value.length >= min &&
      value.every((one) => typeof one === 'string' && pattern.test(one));
    if (value !== undefined && !valid) throw mustBe(name, expected);
  };
}

function whole(min: number, max: number): Check<void> {
  return (name, value) => {
    if (value === undefined) return;
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
    throw mustBe(name, `a whole number from ${min} to ${max}`);
  };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
