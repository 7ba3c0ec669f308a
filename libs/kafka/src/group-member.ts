import { addAbortSignal } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { aborted } from 'node:util';
import { Consumer, MessagesStreamFallbackModes, MessagesStreamModes } from '@platformatic/kafka';
import type { Message } from '@platformatic/kafka';
import type { StoreOutcome } from 'nestjs-payments';
import { endsWithin, InProgress } from 'nestjs-payments/engines';
import { baseOptions, namesOf } from './kafka-options.js';
import type { ResolvedKafkaOptions } from './kafka-options.js';

/**
 * The options of the membership. Kafka gives the partitions of a process to another one after 10 seconds without a heartbeat.
 * The other processes have 10 seconds to take part in a new assignment, and Kafka answers the request for an assignment
 * after this time.
 */
const GROUP = { sessionTimeout: 10_000, rebalanceTimeout: 10_000, requestTimeout: 15_000 };
/** The largest answer, in bytes (a larger message comes alone), and the milliseconds that Kafka waits for a message. */
const FETCH = { maxBytes: 8_388_608, maxWaitTime: 500, highWaterMark: 100 };
/** Milliseconds to wait for the last commit, and for the end of the connections. */
const CLOSE_MS = 2000;

/** Stores a message. After every outcome except `retry`, Kafka does not have to deliver the message again. */
export type Settle = (message: Message, deliveries: number) => Promise<StoreOutcome>;

/**
 * A process in the consumer group of its service. The group assigns it partitions, and assigns them anew (a rebalance)
 * whenever a process of the service starts or ends.
 */
export class GroupMember {
  readonly #consumer: Consumer;
  readonly #inProgress = new InProgress<Message>();
  readonly #failed = Promise.withResolvers<never>();
  readonly #ending = new AbortController();
  /** Ends the assignment. */
  #revoked = new AbortController();
  /** The end of the last commit. */
  #committed: Promise<unknown> = Promise.resolve();

  constructor(
    private readonly options: ResolvedKafkaOptions,
    service: string,
    private readonly settle: Settle,
  ) {
    const { groupId } = namesOf(options.topic, service);
    const client = { ...baseOptions(options), ...GROUP };
    this.#consumer = new Consumer({ ...client, groupId, autocommit: false });
  }

  /** Takes messages until the signal is aborted. Rejects if the connection is lost. */
  async run(signal: AbortSignal): Promise<void> {
    const { promise, reject } = this.#failed;
    this.#consumer.on('error', reject);
    // After the start of a rebalance, messages that are taken would be taken again, and a commit would be rejected with
    // another rebalance.
    this.#consumer.on('consumer:group:rebalance', () => this.#revoked.abort());
    this.#consumer.on('consumer:group:join', () => void this.#take().catch(reject));
    // The client ends the membership if no stream reads the topic, such as between two assignments.
    this.#consumer.topics.track(this.options.topic);
    this.#consumer.joinGroup({}).catch(reject);
    try {
      await Promise.race([aborted(signal, this), promise]);
    } finally {
      this.#ending.abort();
      await this.#inProgress.end();
      await endsWithin(CLOSE_MS, this.#committed);
      await endsWithin(CLOSE_MS, this.#consumer.close(true));
    }
  }

  /**
   * Takes the messages of a new assignment, from the committed offsets on. Creates a new stream of the client for each
   * assignment. A stream for several assignments can skip messages, because answers from before a rebalance replace the
   * offsets that the stream read after the rebalance.
   */
  async #take(): Promise<void> {
    const { topic, maxInProgress } = this.options;
    const stream = await this.#consumer.consume({
      ...FETCH,
      topics: [topic],
      mode: MessagesStreamModes.COMMITTED,
      // If there is no committed offset, any other start would skip messages, for example those of a partition that was
      // added later.
      fallbackMode: MessagesStreamFallbackModes.EARLIEST,
    });
    this.#revoked.abort();
    const { signal: revoked } = (this.#revoked = new AbortController());
    const signal = AbortSignal.any([revoked, this.#ending.signal]);
    addAbortSignal(signal, stream);
    const partitions = new Map<number, Progress>();
    /** For each key, the end of its last message. */
    const keys = new Map<string, Promise<void>>();
    try {
      for await (const message of stream) {
        while (this.#inProgress.size >= maxInProgress) await this.#inProgress.next();
        if (signal.aborted) return;
        const progress = partitions.get(message.partition) ?? new Progress();
        partitions.set(message.partition, progress);
        progress.add(message);
        const key = (message.key as Buffer | undefined)?.toString('latin1') ?? `${message.offset}`;
        const settled = this.#repeat(message, keys.get(key), signal).then((isSettled) => {
          if (keys.get(key) === settled) keys.delete(key);
          if (isSettled && !revoked.aborted) this.#commit(progress.remove(message));
        });
        keys.set(key, settled);
        this.#inProgress.add(message, settled);
      }
      throw new Error('Kafka ended the delivery of messages.');
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }

  /**
   * Settles a message after all earlier messages with its key. Returns `false` if the signal was aborted before that. Never
   * rejects.
   */
  async #repeat(
    message: Message,
    earlier: Promise<void> | undefined,
    signal: AbortSignal,
  ): Promise<boolean> {
    await earlier;
    for (let deliveries = 1; !signal.aborted; deliveries += 1) {
      const outcome = await this.settle(message, deliveries);
      if (outcome.action !== 'retry') return true;
      await delay(outcome.afterMs, undefined, { signal }).catch(() => undefined);
    }
    return false;
  }

  /** Commits the offset after a message. The client sends one commit at a time. */
  #commit(message: Message | undefined): void {
    if (message === undefined) return;
    // A commit that fails ends `run`. Its messages are delivered again.
    this.#committed = Promise.resolve(message.commit()).catch(this.#failed.reject);
  }
}

/** The messages of a partition that were taken and are not settled. */
class Progress {
  /** In the order of the partition, each with the message before it. */
  readonly #open = new Map<Message, Message | undefined>();
  #last: Message | undefined;

  add(message: Message): void {
    this.#open.set(message, this.#last);
    this.#last = message;
  }

  /** Returns the message up to which all messages are now settled, or `undefined` if it is the same as before. */
  remove(message: Message): Message | undefined {
    const [oldest] = this.#open.keys();
    this.#open.delete(message);
    const [settled = this.#last] = this.#open.values();
    return message === oldest ? settled : undefined;
  }
}
