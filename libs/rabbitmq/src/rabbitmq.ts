import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { ThrottledLog } from 'nestjs-payments';
import type {
  EngineCall,
  EngineMessage,
  EventRelay,
  MessageSource,
  StoreMessage,
  StoreOutcome,
} from 'nestjs-payments';
import { Connection } from 'rabbitmq-client';
import type { AsyncMessage, Channel, ConnectionOptions, ReturnedMessage } from 'rabbitmq-client';
import { keepBytes, versionOf } from './client-internals.js';
import { toDeadLetter, toOutgoing, toTaken } from './message-encoding.js';
import type { Outgoing } from './message-encoding.js';
import { optionsInvalid, resolveOptions } from './rabbitmq-options.js';
import type { RabbitMQOptions, ResolvedRabbitMQOptions } from './rabbitmq-options.js';
import { checkTopology, deadQueueOf, queueOf } from './topology.js';

/** Milliseconds to wait for the end of a connection, after which its socket is closed. */
const CLOSE_MS = 2000;
/** Milliseconds to wait until a dead letter is accepted. */
const DEAD_LETTER_MS = 10_000;
/** Milliseconds after which a message that could not become a dead letter is delivered again. */
const AGAIN_MS = 30_000;

/** What {@link rabbitMQ} returns: the value of the option `relay` of a gateway, or of `source` of a worker service. */
export interface RabbitMQEngine extends EventRelay, MessageSource {
  readonly verify: boolean;
  /**
   * Connects and checks the settings of exchange and queues, or creates them.
   *
   * @throws PaymentsError `engine_unsafe` if a setting loses events, or if something is missing and not created. Rejects
   *   with another error if the server cannot be reached.
   */
  open(): Promise<void>;
  /** Closes all connections. Later calls of the other functions reject. */
  close(): Promise<void>;
}

/**
 * Hands events over to RabbitMQ, and takes them from it. The gateway publishes to a durable topic exchange. Each worker
 * service has a durable quorum queue, and one for dead letters. Connects with the first call.
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
export function rabbitMQ(options: RabbitMQOptions): RabbitMQEngine {
  return new RabbitMQ(resolveOptions(options));
}

/** A connection whose settings were checked, with a channel in confirm mode. */
class Publisher {
  /** The ids of the messages that the server returned, because no queue took them. */
  readonly #returned = new Set<string>();

  constructor(
    readonly connection: Connection,
    readonly channel: Channel,
  ) {
    channel.on('basic.return', ({ correlationId }: ReturnedMessage) =>
      this.#returned.add(String(correlationId)),
    );
  }

  /** Resolves when the server has confirmed the message, which quorum queues do when most nodes have stored it. */
  async send({ envelope, body }: Outgoing): Promise<void> {
    if (!this.connection.ready) {
      const fix = 'Look for an alarm of memory or disk space at the server.';
      throw new Error(`RabbitMQ accepts no messages on this connection at the moment. ${fix}`);
    }
    const correlationId = randomUUID();
    try {
      const message = { ...envelope, correlationId, durable: true, mandatory: true };
      await this.channel.basicPublish(message, body);
      // The server returns a message before it confirms it, and the client emits the return in the next turn.
      await setImmediate();
      if (this.#returned.has(correlationId)) {
        throw new Error(
          'RabbitMQ returned the message, because no queue takes it. Start each worker service once, or name them in the ' +
            'option "services".',
        );
      }
    } finally {
      this.#returned.delete(correlationId);
    }
  }
}

class RabbitMQ implements RabbitMQEngine {
  readonly verify: boolean;
  readonly #options: ResolvedRabbitMQOptions;
  readonly #connections = new Set<Connection>();
  readonly #log = new ThrottledLog(new Logger('PaymentEngine'));
  #publisher: Promise<Publisher> | undefined;
  #closed = false;

  constructor(options: ResolvedRabbitMQOptions) {
    this.#options = options;
    this.verify = options.verify;
  }

  async open(): Promise<void> {
    await this.#openPublisher();
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    const { exchange, connection } = this.#options;
    await this.#send(toOutgoing(message, exchange, connection.frameMax), signal);
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const { exchange, service, maxInProgress } = this.#options;
    if (service === undefined) throw optionsInvalid('"source" needs the option "service".');
    if (signal.aborted) return;
    const connection = await this.#connect();
    const ended = Promise.withResolvers<Error | undefined>();
    const stop = (): void => ended.resolve(undefined);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    try {
      const channel = await connection.acquire({ emitErrorsFromChannel: true });
      const inProgress = new InProgress(channel);
      keepBytes(channel);
      channel.on('error', ended.resolve);
      channel.on('basic.cancel', () =>
        ended.resolve(new Error('RabbitMQ ended the consumer. Its queue may have been deleted.')),
      );
      channel.once('close', () => ended.resolve(new Error('RabbitMQ closed the channel.')));
      await channel.basicQos({ prefetchCount: maxInProgress });
      const consumer = await channel.basicConsume(
        { queue: queueOf(exchange, service) },
        (message) => {
          inProgress.add(message, async () => {
            const outcome = await store(toTaken(message));
            return outcome.action === 'reject' ? this.#reject(message, service, outcome) : outcome;
          });
        },
      );
      const failure = await ended.promise;
      // No further message arrives after the cancellation. Messages that have arrived before it stay unacknowledged.
      const cancelled = channel.basicCancel(consumer).catch(() => undefined);
      await inProgress.end();
      await cancelled;
      await channel.close();
      if (failure !== undefined) throw failure;
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#end(connection);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#log.flush();
    const publisher = await this.#publisher?.catch(() => undefined);
    if (publisher !== undefined) await this.#end(publisher.connection, publisher.channel);
    await Promise.all(Array.from(this.#connections, (connection) => this.#end(connection)));
  }

  /** Moves a message to the queue of dead letters. If that fails, the message is delivered again. */
  async #reject(
    message: AsyncMessage,
    service: string,
    { code }: { readonly code: string },
  ): Promise<StoreOutcome> {
    const { exchange, connection } = this.#options;
    const queue = deadQueueOf(exchange, service);
    try {
      const letter = toDeadLetter(message, queue, code, connection.frameMax);
      await this.#send(letter, AbortSignal.timeout(DEAD_LETTER_MS));
      return { action: 'acknowledge' };
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const line = `A rejected message stays in its queue, because "${queue}" did not take it. ${reason}`;
      this.#log.error('reject', line);
      return { action: 'retry', afterMs: AGAIN_MS };
    }
  }

  async #send(message: Outgoing, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const publisher = await abortable(this.#openPublisher(), signal);
    await abortable(publisher.send(message), signal);
  }

  /** Resolves with the publisher. If its channel was lost, opens another one. */
  #openPublisher(): Promise<Publisher> {
    const forget = (): void => {
      if (this.#publisher === opening) this.#publisher = undefined;
    };
    const open = async (): Promise<Publisher> => {
      const connection = await this.#connect();
      try {
        const channel = await connection.acquire();
        channel.once('close', () => {
          forget();
          void this.#end(connection);
        });
        await channel.confirmSelect();
        return new Publisher(connection, channel);
      } catch (error) {
        await this.#end(connection);
        throw error;
      }
    };
    if (this.#publisher !== undefined) return this.#publisher;
    const opening = open();
    this.#publisher = opening;
    opening.catch(forget);
    return opening;
  }

  /** Connects to the first node that answers, and checks the settings of exchange and queues. */
  async #connect(): Promise<Connection> {
    const { hosts = [undefined], ...options } = this.#options.connection;
    let last: unknown;
    for (const host of hosts) {
      if (this.#closed) throw new Error('The connection to RabbitMQ was closed.');
      const one = host === undefined ? {} : { hosts: [host] };
      const connection = new Connection({ ...options, ...one } as ConnectionOptions);
      this.#connections.add(connection);
      try {
        const version = versionOf(connection);
        await new Promise<void>((resolve, reject) => {
          connection.once('connection', resolve);
          // The client would connect again by itself, but without a check of the settings. A lost connection closes its
          // channels, so that later errors need no listener.
          connection.on('error', reject);
        });
        await checkTopology(connection, await version, this.#options);
        return connection;
      } catch (error) {
        await this.#end(connection);
        last = error;
      }
    }
    throw last;
  }

  /** Closes a channel and its connection. A server that does not answer delays this by two seconds at most. */
  async #end(connection: Connection, channel?: Channel): Promise<void> {
    if (!this.#connections.delete(connection)) return;
    // The client closes the channels of a lost connection before it schedules the next connection, which must not happen.
    await setImmediate();
    const close = async (): Promise<void> => {
      await channel?.close();
      await connection.close();
    };
    if (connection.ready) {
      await abortable(close(), AbortSignal.timeout(CLOSE_MS)).catch(() => undefined);
    }
    connection.unsafeDestroy();
  }
}

/**
 * The messages of a channel that are not acknowledged yet. A message that must be delivered again stays unacknowledged
 * until its time has come, because RabbitMQ delivers a returned message at once. If the process dies meanwhile, RabbitMQ
 * delivers the message to another process.
 */
class InProgress {
  readonly #settling = new Set<Promise<void>>();
  readonly #waiting = new Set<() => void>();
  #ending = false;

  constructor(private readonly channel: Channel) {}

  /** Acknowledges or returns the message as the result of `work` says. */
  add({ deliveryTag }: AsyncMessage, work: () => Promise<StoreOutcome>): void {
    // RabbitMQ delivers the message again after the channel was closed.
    if (this.#ending) return;
    const settle = async (): Promise<void> => {
      const again: StoreOutcome = { action: 'retry', afterMs: AGAIN_MS };
      const outcome = await work().catch(() => again);
      if (outcome.action === 'retry') await this.#wait(outcome.afterMs);
      if (outcome.action === 'retry') this.channel.basicNack({ deliveryTag, requeue: true });
      else this.channel.basicAck({ deliveryTag });
    };
    // If the channel is closed, RabbitMQ delivers the message again, and the inbox ignores it.
    const settling = settle()
      .catch(() => undefined)
      .finally(() => this.#settling.delete(settling));
    this.#settling.add(settling);
  }

  /** Returns the messages that wait for their next delivery at once. Resolves when all others are settled too. */
  async end(): Promise<void> {
    this.#ending = true;
    for (const release of this.#waiting) release();
    await Promise.all(this.#settling);
  }

  async #wait(ms: number): Promise<void> {
    if (this.#ending) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, ms);
    this.#waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }
}

/** Resolves or rejects as `promise` does, or rejects with the reason of the signal when it is aborted. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
