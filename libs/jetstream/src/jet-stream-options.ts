import { unescape } from 'node:querystring';
import type { NodeConnectionOptions } from '@nats-io/transport-node';
import {
  checkFields,
  clientOptions,
  ENGINE_CHECKS,
  flag,
  matching,
  mustBe,
} from 'nestjs-payments/engines';
import type { EngineOptions, OptionCheck } from 'nestjs-payments/engines';

/**
 * Further options of the connection, such as `user`, `pass`, `authenticator`, `tls` and `name`. Two kinds of options of
 * the client are not allowed: those that control how the client reconnects, because the adapter reconnects itself, and
 * `debug`, which would print the bodies of events.
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
   * The name of the stream: 1 to 100 of `A-Z a-z 0-9 _ -`. Its subjects are `<stream>.>`. The dead letters of all
   * worker services are in the stream `<stream>_DEAD`, under the subjects `<stream>_dead.<service>`.
   */
  stream: string;
  /**
   * Whether a stream may have only one replica. With one replica, a crash of the machine or a power failure loses the
   * events of the last two minutes, unless the server has the setting `sync_interval: always` (nats-server 2.10 or
   * later). A client cannot read this setting. Default `false`: one replica counts as an unsafe setting.
   */
  oneReplica?: boolean;
  /** Further options of the connection. Default: none. */
  connection?: JetStreamConnectionOptions;
}

/** {@link JetStreamOptions} with all defaults. The connection may contain a password. */
export type ResolvedOptions = ReturnType<typeof resolveOptions>;

/**
 * Checks the options and adds the defaults. The result is frozen.
 *
 * @throws PaymentsError `options_invalid`. No error message contains the value of an option.
 */
export function resolveOptions(options: JetStreamOptions) {
  const { servers, connection, ...others } = checkFields('jetStream', options, {
    ...ENGINE_CHECKS,
    servers: addresses,
    stream: matching('1 to 100 of A-Z, a-z, 0-9, _ and -', /^[\w-]{1,100}$/),
    oneReplica: flag(false),
    connection: clientOptions<JetStreamConnectionOptions>(),
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

/**
 * Checks the addresses, and returns them as URLs. The client ignores the user and the password in an address, so
 * `resolveOptions()` passes them to the client as options.
 */
const addresses: OptionCheck<readonly URL[]> = (name, value) => {
  const urls = [value ?? []].flat().map((text: unknown) => {
    const address = typeof text === 'string' ? text : '';
    return URL.parse(address.includes('://') ? address : `nats://${address}`);
  });
  const isAddress = (url: URL | null): url is URL => url?.protocol === 'nats:' && url.host !== '';
  if (urls.length > 0 && urls.every(isAddress)) return urls;
  // An error of URL would show the address, which may contain a password.
  const expected = 'one or more addresses such as nats://nats.internal:4222';
  throw mustBe(name, expected, value, 'For TLS, set "connection.tls".');
};
