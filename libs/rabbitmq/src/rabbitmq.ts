import { randomUUID } from 'node:crypto';
import { setImmediate, setTimeout as delay } from 'node:timers/promises';
import { aborted } from 'node:util';
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
  endsWithin,
  engineLog,
  InProgress,
  requireService,
  SharedConnection,
} from 'nestjs-payments/engines';
import { Connection } from 'rabbitmq-client';
import type { AsyncMessage, Channel, ReturnedMessage } from 'rabbitmq-client';
import { toDeadLetter, toOutgoing, toTaken } from './message-encoding.js';
import type { Outgoing } from './message-encoding.js';
import { resolveOptions } from './rabbitmq-options.js';
import type { RabbitMQOptions, ResolvedRabbitMQOptions } from './rabbitmq-options.js';
import { checkTopology, deadQueueOf, queueOf } from './topology.js';

/** Maximum number of milliseconds to wait until a connection has closed. Then the adapter closes its socket. */
const CLOSE_MS = 2000;
/** Milliseconds after which RabbitMQ delivers a message again that could not be stored as a dead letter. */
const AGAIN_MS = 30_000;

/**
 * Creates the engine for the options `relay` and `source`. As `relay`, the engine hands events over to RabbitMQ; as
 * `source`, it takes events from RabbitMQ. The gateway publishes to a durable topic exchange. Each worker service has
 * two durable quorum queues: one for events and one for dead letters. The first call of a method connects to RabbitMQ.
 *
 * @throws PaymentsError `options_invalid` if an option is missing, wrong or unknown.
 * @example
 * ```ts
 * // gateway
 * const relay = rabbitMQ({ url: process.env.RABBITMQ_URL, exchange: 'payments', services: ['ledger', 'mail'] });
 * // worker service
 * const source = rabbitMQ({ url: process.env.RABBITMQ_URL, exchange: 'payments', service: 'ledger' });
 * ```
 */
export function rabbitMQ(options: RabbitMQOptions): Required<EventRelay & MessageSource> {
  return new RabbitMQ(resolveOptions(options));
}

/** A connection whose settings were checked, with a channel in confirm mode. */
class Publisher {
  /** The ids of the messages that the server returned because no queue took them. */
  readonly #returned = new Set<string>();

  constructor(
    readonly connection: Connection,
    readonly channel: Channel,
  ) {
    channel.on('basic.return', ({ correlationId }: ReturnedMessage) =>
      this.#returned.add(String(correlationId)),
    );
  }

  /**
   * Resolves when the server has confirmed the message. With quorum queues, the server confirms a message when most
   * nodes have stored it.
   */
  async send({ envelope, body }: Outgoing): Promise<void> {
    if (!this.connection.ready) {
      const fix = 'Check the server for an alarm of memory or disk space.';
      throw new Error(`RabbitMQ accepts no messages on this connection at the moment. ${fix}`);
    }
    const correlationId = randomUUID();
    try {
      const message = { ...envelope, correlationId, durable: true, mandatory: true };
      await this.channel.basicPublish(message, body);
      // The server returns a message before it confirms the message, and the client emits the event of the return in
      // the next turn of the event loop.
      await setImmediate();
      if (this.#returned.has(correlationId)) {
        throw new Error(
          'RabbitMQ returned the message, because no queue takes it. Start each worker service once, or list the worker ' +
            'services in the option "services".',
        );
      }
    } finally {
      this.#returned.delete(correlationId);
    }
  }
}

class RabbitMQ implements EventRelay, MessageSource {
  readonly verify: boolean;
  readonly #options: ResolvedRabbitMQOptions;
  readonly #publisher: SharedConnection<Publisher>;
  readonly #log = engineLog();
  /** How often the adapter has tried to connect. */
  #attempts = 0;

  constructor(options: ResolvedRabbitMQOptions) {
    this.#options = options;
    this.verify = options.verify;
    this.#publisher = new SharedConnection(
      () =>
        this.#connect(async (connection) => {
          const publisher = new Publisher(connection, await connection.acquire());
          publisher.channel.once('close', () => void this.#publisher.end(publisher));
          await publisher.channel.confirmSelect();
          return publisher;
        }),
      end,
    );
  }

  async open(): Promise<void> {
    await this.#publisher.get();
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    const { exchange, connection } = this.#options;
    const outgoing = toOutgoing(message, exchange, connection.frameMax);
    const publisher = await this.#publisher.get();
    signal.throwIfAborted();
    // The client keeps each message until it is confirmed. A queue that has lost most of its nodes confirms no message.
    const stop = (): void => void this.#publisher.end(publisher);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await publisher.send(outgoing);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const { exchange, maxInProgress } = this.#options;
    const service = requireService(this.#options.service);
    const connection = await this.#connect(async (opened) => opened);
    const inProgress = new InProgress<AsyncMessage>();
    const ending = new AbortController();
    const ended = Promise.withResolvers<Error | undefined>();
    void aborted(signal, connection).then(() => ended.resolve(undefined));
    try {
      const channel = await connection.acquire({ emitErrorsFromChannel: true });
      channel.on('error', ended.resolve);
      channel.on('basic.cancel', () =>
        ended.resolve(new Error('RabbitMQ ended the consumer. Its queue may have been deleted.')),
      );
      channel.once('close', () => ended.resolve(new Error('RabbitMQ closed the channel.')));
      await channel.basicQos({ prefetchCount: maxInProgress });
      const settle = async (message: AsyncMessage): Promise<void> => {
        const { deliveryTag } = message;
        let outcome = await store(toTaken(message));
        if (outcome.action === 'reject') {
          outcome = await this.#reject(message, service, outcome.code);
        }
        if (outcome.action !== 'retry') return channel.basicAck({ deliveryTag });
        // RabbitMQ delivers a returned message at once. Therefore, the message stays unacknowledged until its wait is
        // over or consuming ends. If the process dies before that, RabbitMQ delivers the message to another process.
        await delay(outcome.afterMs, undefined, ending).catch(() => undefined);
        channel.basicNack({ deliveryTag, requeue: true });
      };
      const queue = queueOf(exchange, service);
      const consumer = await channel.basicConsume({ queue }, (message) => {
        // A message that arrives later stays unacknowledged. RabbitMQ delivers it again after the channel was closed.
        if (!ending.signal.aborted) inProgress.add(message, settle(message));
      });
      const failure = await ended.promise;
      ending.abort();
      const cancelled = channel.basicCancel(consumer).catch(() => undefined);
      await inProgress.end();
      await cancelled;
      await channel.close();
      if (failure !== undefined) throw failure;
    } finally {
      await end({ connection });
    }
  }

  async status(): Promise<EngineStatus> {
    const { connection } = await this.#publisher.get();
    const { exchange, service } = this.#options;
    const count = async (queue: string): Promise<number> =>
      (await connection.queueDeclare({ queue, passive: true })).messageCount;
    if (service === undefined) {
      await connection.exchangeDeclare({ exchange, passive: true });
      return {};
    }
    const [lag, deadLetters] = await Promise.all(
      [queueOf(exchange, service), deadQueueOf(exchange, service)].map(count),
    );
    return { lag: lag!, deadLetters: deadLetters! };
  }

  async close(): Promise<void> {
    this.#log.flush();
    await this.#publisher.close();
  }

  /**
   * Moves a rejected message to the queue of dead letters. If this fails, RabbitMQ delivers the message again later.
   */
  async #reject(message: AsyncMessage, service: string, code: string): Promise<StoreOutcome> {
    const { exchange, connection } = this.#options;
    const queue = deadQueueOf(exchange, service);
    try {
      const publisher = await this.#publisher.get();
      await publisher.send(toDeadLetter(message, queue, code, connection.frameMax));
      return { action: 'acknowledge' };
    } catch (error) {
      const line = `A rejected message stays in its queue, because the queue "${queue}" did not accept it as a dead letter. ${(error as Error).message}`;
      this.#log.error('reject', line);
      return { action: 'retry', afterMs: AGAIN_MS };
    }
  }

  /**
   * Connects to a node, checks the settings of the exchange and the queues, and calls `use`. Returns the result of
   * `use`. If one of these steps fails, closes the connection.
   */
  async #connect<T>(use: (connection: Connection) => Promise<T>): Promise<T> {
    const { hosts = [], ...options } = this.#options.connection;
    const host = hosts[this.#attempts % hosts.length];
    this.#attempts += 1;
    const connection = new Connection({
      ...options,
      ...(host !== undefined && { hosts: [host] }),
    });
    try {
      await new Promise<void>((resolve, reject) => {
        connection.once('connection', resolve);
        // The client would connect again by itself, but without a check of the settings. A lost connection closes its
        // channels, so that later errors need no listener.
        connection.on('error', reject);
      });
      await checkTopology(connection, this.#options, this.#log);
      return await use(connection);
    } catch (error) {
      await end({ connection });
      throw error;
    }
  }
}

/** Closes a channel and its connection. Waits at most two seconds for the server. */
async function end({ connection, channel }: { connection: Connection; channel?: Channel }) {
  // The client closes the channels of a lost connection before it schedules the next connection, which must not happen.
  await setImmediate();
  if (connection.ready) {
    const closed = Promise.resolve(channel?.close()).then(() => connection.close());
    await endsWithin(CLOSE_MS, closed);
  }
  connection.unsafeDestroy();
}
