import {
  Admin,
  compatibilityPartitioner,
  Consumer,
  ListOffsetTimestamps,
  ProduceAcks,
  Producer,
} from '@platformatic/kafka';
import type { Message, MessageToProduce } from '@platformatic/kafka';
import type {
  EngineCall,
  EngineMessage,
  EngineStatus,
  EventRelay,
  MessageSource,
  StoreMessage,
  StoreOutcome,
} from 'nestjs-payments';
import {
  engineLog,
  requireService,
  SharedConnection,
  withReasonOnly,
} from 'nestjs-payments/engines';
import { GroupMember } from './group-member.js';
import { baseOptions, namesOf, resolveOptions } from './kafka-options.js';
import type { KafkaOptions, ResolvedKafkaOptions } from './kafka-options.js';
import { toDeadLetter, toRecord, toTaken } from './message-encoding.js';
import { checkTopics, isUnknownTopic } from './topic-settings.js';

/** Milliseconds after which a message that could not become a dead letter is delivered again. */
const AGAIN_MS = 30_000;

/**
 * Hands events over to Kafka, and takes them from it. All events are in one topic, with the company and the transaction as
 * the key. Each worker service is a consumer group, and has a topic for dead letters. Connects with the first call.
 *
 * @throws PaymentsError `options_invalid` if an option is missing, wrong or misspelt. `open`, `publish` and `consume`
 *   reject with `engine_unsafe` if a setting of a topic loses events.
 * @example
 * ```ts
 * // gateway
 * const relay = kafka({ brokers: process.env.KAFKA_BROKERS!.split(','), topic: 'payments' });
 * // worker service
 * const source = kafka({ brokers: process.env.KAFKA_BROKERS!.split(','), topic: 'payments', service: 'ledger' });
 * ```
 */
export function kafka(options: KafkaOptions): Required<EventRelay & MessageSource> {
  return new Kafka(resolveOptions(options));
}

/** The clients of one connection, whose settings were checked. Each client connects again by itself. */
interface Session {
  readonly admin: Admin;
  readonly producer: Producer;
  /** Reads offsets, and takes no messages. A gateway has none. */
  readonly monitor: Consumer | undefined;
}

class Kafka implements EventRelay, MessageSource {
  readonly verify: boolean;
  readonly #options: ResolvedKafkaOptions;
  readonly #session: SharedConnection<Session>;
  readonly #log = engineLog();

  constructor(options: ResolvedKafkaOptions) {
    this.#options = options;
    this.verify = options.verify;
    this.#session = new SharedConnection(() => this.#connect(), end);
  }

  async open(): Promise<void> {
    await clean(() => this.#session.get());
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    await clean(async () => {
      const session = await this.#session.get();
      signal.throwIfAborted();
      // An abort ends the connection. Otherwise, the client would send a message that waits for a connection later.
      const stop = (): void => void this.#session.end(session);
      signal.addEventListener('abort', stop, { once: true });
      try {
        await this.#send(session, toRecord(message, this.#options.topic));
      } finally {
        signal.removeEventListener('abort', stop);
      }
    });
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const service = requireService(this.#options.service);
    await clean(async () => {
      const session = await this.#session.get();
      const settle = async (message: Message, deliveries: number): Promise<StoreOutcome> => {
        const outcome = await store(toTaken(message, deliveries));
        return outcome.action === 'reject' ? this.#reject(message, service, outcome.code) : outcome;
      };
      try {
        await new GroupMember(this.#options, service, settle).run(signal);
      } catch (error) {
        // The next call checks the settings, because something may be missing.
        await this.#session.end(session);
        throw error;
      }
    });
  }

  async status(): Promise<EngineStatus> {
    return clean(async () => {
      const { admin, monitor } = await this.#session.get();
      const { topic, service } = this.#options;
      const topics = [topic];
      await admin.metadata({ topics, forceUpdate: true });
      if (monitor === undefined) return {};
      const { dead } = namesOf(topic, service!);
      topics.push(dead);
      const { EARLIEST, LATEST } = ListOffsetTimestamps;
      const [first, next] = await Promise.all([
        monitor.listOffsets({ topics, timestamp: EARLIEST }),
        monitor.listOffsets({ topics, timestamp: LATEST }),
      ]);
      const partitions = [...next.get(topic)!.keys()];
      const committed = await monitor.listCommittedOffsets({ topics: [{ topic, partitions }] });
      return {
        lag: sum(next.get(topic)!, first.get(topic)!, committed.get(topic)),
        deadLetters: sum(next.get(dead)!, first.get(dead)!),
      };
    });
  }

  async close(): Promise<void> {
    this.#log.flush();
    await this.#session.close();
  }

  /** Resolves when all replicas that are in sync have the message. */
  async #send(session: Session, message: MessageToProduce): Promise<void> {
    try {
      await session.producer.send({ messages: [message], acks: ProduceAcks.ALL });
    } catch (error) {
      // The topic was deleted. The next call creates it, or reports this.
      if (isUnknownTopic(error)) await this.#session.end(session);
      throw error;
    }
  }

  /** Moves a message to the topic of dead letters. If that fails, the message is delivered again. */
  async #reject(message: Message, service: string, code: string): Promise<StoreOutcome> {
    const { dead } = namesOf(this.#options.topic, service);
    try {
      await this.#send(await this.#session.get(), toDeadLetter(message, dead, code));
      return { action: 'acknowledge' };
    } catch (error) {
      const line = `A rejected message is kept, because the topic "${dead}" did not take it: ${reasonOf(error)}.`;
      this.#log.error('reject', line);
      return { action: 'retry', afterMs: AGAIN_MS };
    }
  }

  async #connect(): Promise<Session> {
    const { topic, service } = this.#options;
    const client = { ...baseOptions(this.#options), retries: 2, retryDelay: 250 };
    const session = {
      admin: new Admin(client),
      // The partitioner of the Java client, so that other producers use the same partition for a key.
      producer: new Producer({ ...client, partitioner: compatibilityPartitioner }),
      monitor:
        service === undefined
          ? undefined
          : new Consumer({ ...client, groupId: namesOf(topic, service).groupId }),
    };
    try {
      await checkTopics(session.admin, this.#options, this.#log);
      return session;
    } catch (error) {
      await end(session);
      throw error;
    }
  }
}

async function end({ admin, producer, monitor }: Session): Promise<void> {
  await Promise.allSettled([admin.close(), producer.close(), monitor?.close()]);
}

/** The number of messages of all partitions, each counted from an offset, by default its first. */
function sum(
  next: readonly bigint[],
  first: readonly bigint[],
  from: readonly bigint[] = [],
): number {
  const counts = next.map((offset, partition) => {
    const [start, earliest] = [from[partition] ?? -1n, first[partition]!];
    return Number(offset - (start > earliest ? start : earliest));
  });
  return counts.reduce((total, count) => total + count, 0);
}

function clean<T>(work: () => Promise<T>): Promise<T> {
  return withReasonOnly(work, (error) => `Kafka: ${reasonOf(error)}`);
}

/** Returns the innermost message of an error of the client. */
function reasonOf(error: unknown): string {
  const { errors, cause, apiId, message } = error as Error & {
    readonly errors?: readonly unknown[];
    readonly apiId?: string;
  };
  const inner = errors?.[0] ?? cause;
  if (inner !== undefined) return reasonOf(inner);
  return apiId === undefined ? message : `${apiId}. ${message}`;
}
