import { unescape } from 'node:querystring';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import {
  checkFields,
  ENGINE_CHECKS,
  matching,
  mustBe,
  optional,
  optionsInvalid,
} from 'nestjs-payments/engines';
import type { EngineOptions, OptionCheck } from 'nestjs-payments/engines';

/**
 * Further options of the connection, such as `user`, `pass`, `authenticator`, `tls` and `name`. The options that are
 * left out would change what the adapter promises: it reconnects by itself, and `debug` prints the bodies.
 */
export type JetStreamConnectionOptions = Omit<
  NodeConnectionOptions,
  'servers' | 'port' | 'debug' | 'reconnect' | 'waitOnFirstConnect'
>;

/** Options of {@link jetStream}. `servers` and `stream` are required. */
export interface JetStreamOptions extends EngineOptions {
  /**
   * The address of a server, or the addresses of several servers of one cluster, such as `nats://nats.internal:4222`. The
   * first address may contain the user and the password of all servers. Set `connection.tls` for TLS.
   */
  servers: string | readonly string[];
  /**
   * The name of the stream: 1 to 100 of `A-Z a-z 0-9 _ -`. Its subjects are `<stream>.>`. The dead letters of all services
   * are in the stream `<stream>_DEAD`, under the subjects `<stream>_dead.<service>`.
   */
  stream: string;
  /** Further options of the connection. Default: none. */
  connection?: JetStreamConnectionOptions;
}

/** {@link JetStreamOptions} with all defaults. The connection may contain a password. */
export type ResolvedOptions = ReturnType<typeof resolveOptions>;

/**
 * Checks the options and adds the defaults. The result is frozen.
 *
 * @throws PaymentsError `options_invalid`. No message contains the content of an option.
 */
export function resolveOptions(options: JetStreamOptions) {
  const { servers, connection, ...others } = checkFields('jetStream', options, {
    ...ENGINE_CHECKS,
    servers: addresses,
    stream: matching('1 to 100 of A-Z, a-z, 0-9, _ and -', /^[\w-]{1,100}$/),
    connection: optional<JetStreamConnectionOptions>(
      'an object with options of the connection',
      (value) => typeof value === 'object',
    ),
  });
  const { username, password } = servers[0]!;
  const own: NodeConnectionOptions = {
    name: 'nestjs-payments',
    timeout: 5000,
    pingInterval: 10_000,
    ...(username !== '' && { user: unescape(username), pass: unescape(password) }),
    ...connection,
    servers: servers.map(({ host }) => host),
    // A client that reconnects by itself buffers messages without a limit, and does not check the settings again.
    reconnect: false,
  };
  return Object.freeze({ ...others, connection: own });
}

/** The client itself ignores a user and a password in an address. */
const addresses: OptionCheck<readonly URL[]> = (name, value) => {
  const urls = [value ?? []].flat().map((text: unknown) => {
    const address = typeof text === 'string' ? text : '';
    const url = URL.parse(address.includes('://') ? address : `nats://${address}`);
    if (url?.host && url.protocol === 'nats:') return url;
    // An error of URL would show the address, which may contain a password.
    throw optionsInvalid(
      `"${name}" must be addresses such as nats://nats.internal:4222. For TLS, set "connection.tls".`,
    );
  });
  if (urls.length > 0) return urls;
  throw mustBe(name, 'one or more addresses such as nats://nats.internal:4222', value);
};
