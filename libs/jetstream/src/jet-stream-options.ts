import { unescape } from 'node:querystring';
import type { NatsConnection, NodeConnectionOptions } from '@nats-io/transport-node';
import { PaymentsError } from 'nestjs-payments';

/**
 * Further options of the connection, such as `user`, `pass`, `authenticator`, `tls` and `name`. The options that are
 * left out would change what the adapter promises: it reconnects by itself, and `debug` prints the bodies.
 */
export type JetStreamConnectionOptions = Omit<
  NodeConnectionOptions,
  'servers' | 'port' | 'debug' | 'reconnect' | 'waitOnFirstConnect'
>;

/** Options of {@link jetStream}. `stream` and `servers` are required, unless `connection` is an open connection. */
export interface JetStreamOptions {
  /**
   * The address of a server, or the addresses of several servers of one cluster, such as `nats://nats.internal:4222`. An
   * address may contain the user and the password. Set `connection.tls` for TLS.
   */
  servers?: string | readonly string[];
  /**
   * The name of the stream: 1 to 100 characters of `A-Z a-z 0-9 _ -`. Its subjects are `<stream>.>`. The dead letters of
   * all services are in the stream `<stream>_DEAD`, under the subjects `<stream>_dead.<service>`.
   */
  stream: string;
  /**
   * The name of this worker service, and of its durable consumer: 1 to 100 characters of `A-Z a-z 0-9 _ -`. Services
   * with different names each take every event. All processes with the same name share the events, so two different
   * services must not have the same name. Required for the option `source` of the module.
   */
  service?: string;
  /**
   * What happens at the start, and after each reconnect. `create`: creates the streams and the consumer if they are
   * missing, and checks them if they exist. `check`: only checks them, and a missing one is an error. `warn`: logs what
   * is missing or unsafe, and continues. Default `create`.
   */
  setup?: 'create' | 'check' | 'warn';
  /** The maximum number of messages that this process stores at the same time. 1 to 10,000. Default 100. */
  maxInProgress?: number;
  /**
   * Whether the module checks the signature of each message. `false` trusts everyone who can write to the stream.
   * Default `true`.
   */
  verify?: boolean;
  /**
   * An open connection of the application, which the adapter does not close; or further options of the adapter's own
   * connection. Default: a connection of the adapter's own.
   */
  connection?: NatsConnection | JetStreamConnectionOptions;
}

/** {@link JetStreamOptions} with all defaults. */
export interface ResolvedOptions {
  readonly stream: string;
  readonly service: string | undefined;
  readonly setup: 'create' | 'check' | 'warn';
  readonly maxInProgress: number;
  readonly verify: boolean;
  /** An open connection of the application, or the options of the adapter's own connection. */
  readonly connection: NatsConnection | NodeConnectionOptions;
}

const OWN_CONNECTION = { name: 'nestjs-payments', timeout: 5000, pingInterval: 10_000 };
/** The adapter connects again by itself, because a client that reconnects buffers messages without a limit. */
const FORBIDDEN = ['servers', 'port', 'debug', 'reconnect', 'waitOnFirstConnect'];
const ADDRESS_RULE = 'an address such as nats://nats.internal:4222, or an array of them';
const NAME_RULE = '1 to 100 characters of A-Z a-z 0-9 _ and -';
const SETUPS: readonly unknown[] = ['create', 'check', 'warn'];
const isText = (value: unknown): boolean => typeof value === 'string' && value !== '';
const isName = (value: unknown): boolean =>
  typeof value === 'string' && /^[A-Za-z0-9_-]{1,100}$/.test(value);
const isCount = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 10_000;

/** For each option, a test of a value that is set, and the rule for the message. */
const RULES: Readonly<Record<keyof JetStreamOptions, readonly [(v: unknown) => boolean, string]>> =
  {
    servers: [
      (v) => isText(v) || (Array.isArray(v) && v.length > 0 && v.every(isText)),
      ADDRESS_RULE,
    ],
    stream: [isName, NAME_RULE],
    service: [isName, NAME_RULE],
    setup: [(v) => SETUPS.includes(v), "'create' (default), 'check' or 'warn'"],
    maxInProgress: [isCount, 'a whole number of messages from 1 to 10000'],
    verify: [(v) => typeof v === 'boolean', 'true or false'],
    connection: [
      (v) => typeof v === 'object' && v !== null,
      'an open connection of @nats-io/transport-node, or options of a connection',
    ],
  };

/** Creates the error about a wrong option. */
export function optionsInvalid(message: string): PaymentsError {
  return new PaymentsError('options_invalid', `jetStream: ${message}`);
}

/**
 * Checks the options and adds the defaults. The result is frozen.
 *
 * @throws PaymentsError `options_invalid`. No message contains the content of an option.
 */
export function resolveOptions(options: JetStreamOptions): ResolvedOptions {
  const given: Partial<JetStreamOptions> = options ?? {};
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(RULES, name)) continue;
    const names = Object.keys(RULES).join(', ');
    throw optionsInvalid(`there is no option "${name}". The options are ${names}.`);
  }
  for (const [name, [isValid, rule]] of Object.entries(RULES)) {
    const value = given[name as keyof JetStreamOptions];
    const isMissing = value === undefined && name !== 'stream';
    if (!isMissing && !isValid(value)) throw optionsInvalid(`"${name}" must be ${rule}.`);
  }
  const { servers, connection = {}, ...others } = given;
  return Object.freeze({
    service: undefined,
    setup: 'create',
    maxInProgress: 100,
    verify: true,
    ...Object.fromEntries(Object.entries(others).filter(([, value]) => value !== undefined)),
    stream: options.stream,
    connection: resolveConnection(connection, servers),
  });
}

/** Whether the option `connection` is an open connection. */
export function isOpen(connection: object): connection is NatsConnection {
  return typeof (connection as Partial<NatsConnection>).isClosed === 'function';
}

function resolveConnection(
  connection: NatsConnection | JetStreamConnectionOptions,
  servers: string | readonly string[] | undefined,
): NatsConnection | NodeConnectionOptions {
  if (isOpen(connection)) {
    if (servers === undefined) return connection;
    throw optionsInvalid('takes "servers" or an open "connection", not both. Remove one of them.');
  }
  const forbidden = FORBIDDEN.find((name) => Object.hasOwn(connection, name));
  if (forbidden !== undefined) {
    throw optionsInvalid(
      `"connection" must not contain "${forbidden}". Set the addresses with "servers"; the adapter reconnects by itself.`,
    );
  }
  const addresses = [servers ?? []].flat().map(parseAddress);
  const [first] = addresses;
  if (first === undefined) throw optionsInvalid(`"servers" must be ${ADDRESS_RULE}.`);
  const { user, pass } = first;
  if (addresses.some((one) => one.user !== user || one.pass !== pass)) {
    throw optionsInvalid('all addresses in "servers" must have the same user and password.');
  }
  return {
    ...OWN_CONNECTION,
    ...(user !== '' && { user, pass }),
    ...(connection as NodeConnectionOptions),
    servers: addresses.map(({ host }) => host),
    reconnect: false,
  };
}

/** The client itself ignores a user and a password in an address. */
function parseAddress(text: string) {
  const url = URL.parse(text.includes('://') ? text : `nats://${text}`);
  // An error of URL would show the address, which may contain a password.
  if (!url?.host || url.protocol !== 'nats:' || !/^\/?$/.test(url.pathname + url.search)) {
    throw optionsInvalid(
      `"servers" must be ${ADDRESS_RULE}. Use nats://, also for TLS, and set "connection.tls".`,
    );
  }
  const { host, username, password } = url;
  return { host, user: unescape(username), pass: unescape(password) };
}
