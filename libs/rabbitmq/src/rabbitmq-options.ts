import {
  checkFields,
  clientOptions,
  ENGINE_CHECKS,
  matching,
  mustBe,
  SERVICES,
} from 'nestjs-payments/engines';
import type { EngineOptions, OptionCheck } from 'nestjs-payments/engines';
import type { ConnectionOptions } from 'rabbitmq-client';

/** The options of `rabbitmq-client` that {@link RabbitMQOptions.connection} accepts. The client checks their values. */
export interface RabbitMQConnection extends Pick<ConnectionOptions, 'tls' | 'connectionName'> {
  /**
   * The nodes of a cluster, such as `['rabbit-1:5672', 'rabbit-2:5672']`. Each time the adapter connects, it uses the
   * next node.
   */
  hosts?: string[];
  /**
   * Seconds between two heartbeats. A connection without any data for twice this time counts as lost. Default 15. The
   * query parameter `heartbeat` of the URL overrides this option.
   */
  heartbeat?: number;
  /** Milliseconds to wait for a connection. Default 5,000. */
  connectionTimeout?: number;
  /**
   * Maximum size of a frame in bytes, which also limits the headers of a message; at most the setting `frame_max` of
   * the server. Default 8,192.
   */
  frameMax?: number;
}

/** Options of {@link rabbitMQ}. `url` and `exchange` are required. */
export interface RabbitMQOptions extends EngineOptions {
  /**
   * The URL of the server with user, password and virtual host, such as `amqps://shop:secret@rabbit.internal/shop`.
   * Without a path, the virtual host is `/`.
   */
  url: string;
  /** Options of the connection that a URL cannot contain. Default: none. */
  connection?: RabbitMQConnection;
  /**
   * The name of the durable topic exchange to which the gateway publishes. The routing key of a message is the type of
   * its event. 1 to 100 of `A-Z a-z 0-9 . _ -`; it must not begin with `amq.`. The queue of a worker service is
   * `<exchange>.<service>`, and the queue of its dead letters is `<exchange>.<service>.dead`.
   */
  exchange: string;
  /**
   * The names of worker services. The gateway creates or checks the queues of these worker services when it connects. A
   * queue takes only messages that are published after the queue was created. Therefore list every worker service here,
   * so that no event is lost before the first process of a worker service starts. Default: none.
   */
  services?: readonly string[];
}

/** {@link RabbitMQOptions} with all defaults. The connection contains a password. */
export type ResolvedRabbitMQOptions = ReturnType<typeof resolveOptions>;

/**
 * Checks the options and adds the defaults. No error message contains the value of an option, because the value may be
 * a secret.
 *
 * @throws PaymentsError `options_invalid`.
 */
export function resolveOptions(options: RabbitMQOptions) {
  const { url, connection, services, ...others } = checkFields('rabbitMQ', options, {
    ...ENGINE_CHECKS,
    url: checkUrl,
    connection: clientOptions<RabbitMQConnection>(),
    exchange: matching(
      '1 to 100 of A-Z, a-z, 0-9, ".", _ and -, and must not begin with "amq."',
      /^(?!amq\.)[\w.-]{1,100}$/,
    ),
    services: SERVICES,
  });
  const all = new Set(others.service === undefined ? services : [others.service, ...services]);
  return Object.freeze({
    ...others,
    services: Object.freeze([...all]),
    connection: { heartbeat: 15, connectionTimeout: 5000, frameMax: 8192, ...connection, url },
  });
}

const checkUrl: OptionCheck<string> = (name, value) => {
  try {
    // The client decodes these parts. The errors of URL and decodeURIComponent contain the password.
    const { protocol, hostname, username, password, pathname } = new URL(String(value));
    if (hostname !== '' && username !== '' && /^amqps?:$/.test(protocol)) {
      decodeURIComponent(username + password + pathname);
      return String(value);
    }
  } catch {
    // The error below names the rule.
  }
  const hint = 'Percent-encode the special characters in user and password.';
  throw mustBe(name, 'a URL such as amqps://user:password@host/vhost', value, hint);
};
