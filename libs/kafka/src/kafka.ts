import {
  Admin,
  compatibilityPartitioner,
  Consumer,
  ListOffsetTimestamps,
  ProduceAcks,
  Producer,
} from '@platformatic/kafka';
import type { GenericError, Message, MessageToProduce } from '@platformatic/kafka';
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
import { checkTopics } from './topic-settings.js';

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

type Session = Awaited<ReturnType<typeof openSession>>;

class Kafka implements EventRelay, MessageSource {
  readonly verify: boolean;
  readonly #options: ResolvedKafkaOptions;
  readonly #session: SharedConnection<Session>;
  readonly #log = engineLog();

  constructor(options: ResolvedKafkaOptions) {
    this.#options = options;
    this.verify = options.verify;
    this.#session = new SharedConnection(() => openSession(options, this.#log), end);
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
      const { monitor } = await this.#session.get();
      const { topic, service } = this.#options;
      if (service === undefined) {
        await monitor.metadata({ topics: [topic], forceUpdate: true });
        return {};
      }
      const { dead } = namesOf(topic, service);
      const topics = [topic, dead];
      const { EARLIEST, LATEST } = ListOffsetTimestamps;
      const [first, next] = await Promise.all([
        monitor.listOffsets({ topics, timestamp: EARLIEST }),
        monitor.listOffsets({ topics, timestamp: LATEST }),
      ]);
      const partitions = [...next.get(topic)!.keys()];
      const committed = await monitor.listCommittedOffsets({ topics: [{ topic, partitions }] });
      /** The number of messages of a topic from an offset of each partition on, by default the first. */
      const count = (name: string, from: readonly bigint[] = []): number =>
        next.get(name)!.reduce((sum, offset, partition) => {
          const oldest = Number(first.get(name)![partition]);
          return sum + Number(offset) - Math.max(Number(from[partition] ?? -1), oldest);
        }, 0);
      return { lag: count(topic, committed.get(topic)), deadLetters: count(dead) };
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
      if ((error as Error).message.startsWith('Unknown topic')) await this.#session.end(session);
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
}

/** Creates the clients of one connection, and checks the settings. Each client connects again by itself. */
async function openSession(options: ResolvedKafkaOptions, log: ReturnType<typeof engineLog>) {
  const { topic, service = '' } = options;
  const client = { ...baseOptions(options), retries: 2, retryDelay: 250 };
  const session = {
    admin: new Admin(client),
    // The partitioner of the Java client, so that other producers use the same partition for a key.
    producer: new Producer({ ...client, partitioner: compatibilityPartitioner }),
    // Reads offsets, and takes no messages.
    monitor: new Consumer({ ...client, groupId: namesOf(topic, service).groupId }),
  };
  try {
    await checkTopics(session.admin, options, log);
    return session;
  } catch (error) {
    await end(session);
    throw error;
  }
}

async function end({ admin, producer, monitor }: Session): Promise<void> {
  await Promise.allSettled([admin.close(), producer.close(), monitor.close()]);
}

function clean<T>(work: () => Promise<T>): Promise<T> {
  return withReasonOnly(work, (error) => `Kafka: ${reasonOf(error)}`);
}

/** Returns the innermost message of an error of the client. */
function reasonOf(error: unknown): string {
  const { errors, cause, apiId, message } = error as GenericError;
  const inner: unknown = errors?.[0] ?? cause;
  if (inner !== undefined) return reasonOf(inner);
  return apiId === undefined ? message : `${apiId}. ${message}`;
}
