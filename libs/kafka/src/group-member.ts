import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { aborted } from 'node:util';
import { Consumer, MessagesStreamFallbackModes, MessagesStreamModes } from '@platformatic/kafka';
import type { CommitOptionsPartition, Message, MessagesStream } from '@platformatic/kafka';
import type { StoreOutcome } from 'nestjs-payments';
import { endsWithin, InProgress } from 'nestjs-payments/engines';
import { baseOptions, namesOf } from './kafka-options.js';
import type { ResolvedKafkaOptions } from './kafka-options.js';

/** Milliseconds without a heartbeat after which Kafka gives the partitions of a process to another one. */
const SESSION_MS = 10_000;
/** Milliseconds that the other processes have to take part in a new assignment. */
const REBALANCE_MS = 10_000;
/** The longest time for an answer, in milliseconds. Kafka answers the request for an assignment after the time above. */
const ANSWER_MS = 15_000;
/** The largest answer, in bytes (a larger message comes alone), and the milliseconds that Kafka waits for a message. */
const FETCH = {
  maxBytes: 8_388_608,
  maxBytesPerPartition: 1_048_576,
  maxWaitTime: 500,
  highWaterMark: 100,
};
/** Milliseconds to wait for the end of the connections. */
const CLOSE_MS = 2000;

/** Stores a message. After every outcome except `retry`, Kafka does not have to deliver the message again. */
export type Settle = (message: Message, deliveries: number) => Promise<StoreOutcome>;

/**
 * A process in the consumer group of its service. The group assigns it partitions, and assigns them anew (a rebalance)
 * whenever a process of the service starts or ends.
 */
export class GroupMember {
  readonly #consumer: Consumer;
  readonly #topic: string;
  readonly #maxInProgress: number;
  readonly #settle: Settle;
  readonly #inProgress = new InProgress<Message>();
  readonly #ended = Promise.withResolvers<void>();
  #assignment: Assignment | undefined;
  /** The end of the last commit. */
  #committed = Promise.resolve();
  #isEnding = false;

  constructor(options: ResolvedKafkaOptions, service: string, settle: Settle) {
    const { topic, maxInProgress } = options;
    this.#consumer = new Consumer({
      ...baseOptions(options),
      groupId: namesOf(topic, service).groupId,
      autocommit: false,
      sessionTimeout: SESSION_MS,
      rebalanceTimeout: REBALANCE_MS,
      requestTimeout: ANSWER_MS,
    });
    this.#topic = topic;
    this.#maxInProgress = maxInProgress;
    this.#settle = settle;
  }

  /** Takes messages until the signal is aborted. Rejects if the connection is lost. */
  async run(signal: AbortSignal): Promise<void> {
    const { promise, resolve, reject } = this.#ended;
    void aborted(signal, this).then(() => resolve());
    this.#consumer.on('error', reject);
    // After the start of a rebalance, messages that are taken would be taken again, and a commit would be rejected with
    // another rebalance.
    this.#consumer.on('consumer:group:rebalance', () => this.#revoke());
    this.#consumer.on('consumer:group:join', () => void this.#take().catch(reject));
    // The client ends the membership if no stream reads the topic, such as between two assignments.
    this.#consumer.topics.track(this.#topic);
    this.#consumer.joinGroup({}).catch(reject);
    try {
      await promise;
      await this.#end();
      await this.#commit();
    } finally {
      await this.#end();
      await endsWithin(CLOSE_MS, this.#consumer.close(true));
    }
  }

  /** Takes no further message. Resolves when no message is being stored. */
  async #end(): Promise<void> {
    this.#isEnding = true;
    this.#assignment?.end();
    await this.#inProgress.end();
  }

  /**
   * Takes the messages of a new assignment, from the committed offsets on. Creates a new stream of the client for each
   * assignment. A stream for several assignments can skip messages, because answers from before a rebalance replace the
   * offsets that the stream read after the rebalance.
   */
  async #take(): Promise<void> {
    const stream = await this.#consumer.consume({
      ...FETCH,
      topics: [this.#topic],
      mode: MessagesStreamModes.COMMITTED,
      // If there is no committed offset, any other start would skip messages, for example those of a partition that was
      // added later.
      fallbackMode: MessagesStreamFallbackModes.EARLIEST,
    });
    const assignment = new Assignment(this.#topic, stream);
    this.#revoke();
    this.#assignment = assignment;
    if (this.#isEnding) assignment.end();
    try {
      for await (const message of stream) {
        while (this.#inProgress.size >= this.#maxInProgress && !assignment.hasEnded) {
          await this.#inProgress.next();
        }
        if (assignment.hasEnded) return;
        const settled = assignment.settle(message, this.#settle);
        this.#inProgress.add(message, settled);
        void settled.then(() => this.#commit());
      }
    } catch (error) {
      if (!assignment.hasEnded) throw error;
    }
    if (!assignment.hasEnded) throw new Error('Kafka ended the delivery of messages.');
  }

  #revoke(): void {
    this.#assignment?.end();
    this.#assignment = undefined;
  }

  /** Commits the offsets up to which all messages of the assignment are settled, one request at a time. */
  #commit(): Promise<void> {
    this.#committed = this.#committed.then(async () => {
      const offsets = this.#assignment?.takeOffsets() ?? [];
      // A commit that fails ends `run`. Its messages are delivered again.
      if (offsets.length > 0) await this.#consumer.commit({ offsets }).catch(this.#ended.reject);
    });
    return this.#committed;
  }
}

/** The messages of the partitions that a process has between two rebalances. */
class Assignment {
  readonly #ending = new AbortController();
  readonly #partitions = new Map<number, Progress>();
  /** For each key, the end of its last message. */
  readonly #keys = new Map<string, Promise<void>>();

  constructor(
    private readonly topic: string,
    private readonly stream: MessagesStream<Buffer, Buffer, Buffer, Buffer>,
  ) {
    // Each message that waits has a listener.
    setMaxListeners(0, this.#ending.signal);
  }

  get hasEnded(): boolean {
    return this.#ending.signal.aborted;
  }

  /** Ends the stream. Messages that wait for their next delivery stay unsettled. */
  end(): void {
    this.#ending.abort();
    this.stream.destroy();
  }

  /** Settles a message after all earlier messages with its key. Never rejects. */
  settle(message: Message, settle: Settle): Promise<void> {
    const { key, partition, offset } = message;
    const progress = this.#partitions.get(partition) ?? new Progress();
    this.#partitions.set(partition, progress);
    progress.add(offset);
    const id = (key as Buffer | undefined)?.toString('latin1') ?? String(offset);
    const settled = this.#settle(message, this.#keys.get(id), settle).then((isSettled) => {
      if (isSettled) progress.remove(offset);
      if (this.#keys.get(id) === settled) this.#keys.delete(id);
    });
    this.#keys.set(id, settled);
    return settled;
  }

  /** Returns the offsets to commit that have changed since the last call. */
  takeOffsets(): CommitOptionsPartition[] {
    const { topic } = this;
    return [...this.#partitions].flatMap(([partition, progress]) => {
      const offset = progress.takeOffset();
      return offset === undefined ? [] : [{ topic, partition, offset, leaderEpoch: -1 }];
    });
  }

  async #settle(
    message: Message,
    earlier: Promise<void> | undefined,
    settle: Settle,
  ): Promise<boolean> {
    await earlier;
    const { signal } = this.#ending;
    for (let deliveries = 1; !signal.aborted; deliveries += 1) {
      const outcome = await settle(message, deliveries);
      if (outcome.action !== 'retry') return true;
      await delay(outcome.afterMs, undefined, { signal }).catch(() => undefined);
    }
    return false;
  }
}

/** The messages of a partition that were taken and are not settled. */
class Progress {
  readonly #open = new Set<bigint>();
  #next = -1n;
  #committed = -1n;

  add(offset: bigint): void {
    this.#open.add(offset);
    this.#next = offset + 1n;
  }

  remove(offset: bigint): void {
    this.#open.delete(offset);
  }

  /** Returns the offset before which all messages are settled, or `undefined` if it is the same as before. */
  takeOffset(): bigint | undefined {
    const [first = this.#next] = this.#open;
    if (first === this.#committed) return undefined;
    return (this.#committed = first);
  }
}
