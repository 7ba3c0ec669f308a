import type { BaseOptions } from '@platformatic/kafka';
import {
  checkFields,
  clientOptions,
  ENGINE_CHECKS,
  matching,
  mustBe,
  whole,
} from 'nestjs-payments/engines';
import type { EngineOptions, OptionCheck } from 'nestjs-payments/engines';

/**
 * The options of `@platformatic/kafka` that {@link KafkaOptions.connection} takes, such as `tls` and `sasl`. The client
 * checks them.
 */
export type KafkaConnection = Partial<
  Pick<BaseOptions, 'tls' | 'tlsServerName' | 'sasl' | 'clientId' | 'clientRack' | 'connectTimeout'>
>;

/** Options of {@link kafka}. `brokers` and `topic` are required. */
export interface KafkaOptions extends EngineOptions {
  /** The address of a broker, or the addresses of several brokers of one cluster, such as `kafka-1.internal:9092`. */
  brokers: string | readonly string[];
  /**
   * The topic of the events: 1 to 150 of `A-Z a-z 0-9 . _ -`. The consumer group of a service is `<topic>.<service>`, and
   * its dead letters are in the topic `<topic>.<service>.dead`.
   */
  topic: string;
  /**
   * The number of partitions with which `setup: 'create'` creates the topic. At most this number of processes of one
   * service can take events at the same time. 1 to 1,000. Default 12.
   */
  partitions?: number;
  /** Further options of the connection. Default: none. */
  connection?: KafkaConnection;
}

/** {@link KafkaOptions} with all defaults. The connection may contain a password. */
export type ResolvedKafkaOptions = ReturnType<typeof resolveOptions>;

/**
 * Checks the options and adds the defaults. The result is frozen.
 *
 * @throws PaymentsError `options_invalid`. No message contains the content of an option.
 */
export function resolveOptions(options: KafkaOptions) {
  return checkFields('kafka', options, {
    ...ENGINE_CHECKS,
    brokers: addresses,
    topic: matching('1 to 150 of A-Z, a-z, 0-9, ".", _ and -', /^(?!\.\.?$)[\w.-]{1,150}$/),
    partitions: whole({ default: 12, min: 1, max: 1000, unit: 'partitions' }),
    connection: clientOptions<KafkaConnection>(),
  });
}

/** Returns the options of the client that all connections have. */
export function baseOptions({ brokers, connection }: ResolvedKafkaOptions) {
  return {
    clientId: 'nestjs-payments',
    requestTimeout: 10_000,
    ...connection,
    bootstrapBrokers: [...brokers],
    // A topic that a broker creates by itself may have settings that lose events.
    autocreateTopics: false,
  };
}

/** Returns the consumer group of a service, and the topic of its dead letters. */
export function namesOf(topic: string, service: string) {
  const groupId = `${topic}.${service}`;
  return { groupId, dead: `${groupId}.dead` };
}

const ADDRESS = /^([\w.-]+|\[[\da-f:.]+\]):\d{1,5}$/i;

const addresses: OptionCheck<readonly string[]> = (name, value) => {
  const all: unknown[] = Array.isArray(value) ? value : [value];
  if (all.length > 0 && all.every((one) => typeof one === 'string' && ADDRESS.test(one))) {
    return Object.freeze([...(all as string[])]);
  }
  throw mustBe(name, 'an address such as kafka-1.internal:9092, or an array of addresses', value);
};
