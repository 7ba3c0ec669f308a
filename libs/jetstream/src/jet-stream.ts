import { aborted } from 'node:util';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { ConsumerMessages, JetStreamClient, JsMsg } from '@nats-io/jetstream';
import { connect, millis } from '@nats-io/transport-node';
import type {
  EngineCall,
  EngineMessage,
  EngineStatus,
  EventRelay,
  MessageSource,
  StoreMessage,
} from 'nestjs-payments';
import { engineLog, InProgress, requireService, SharedConnection } from 'nestjs-payments/engines';
import { resolveOptions } from './jet-stream-options.js';
import type { JetStreamOptions, ResolvedOptions } from './jet-stream-options.js';
import { deadLetter, encode, headersOf, subjectOf, takenMessage } from './message.js';
import { checkSettings, namesOf } from './stream-settings.js';

/** How long the adapter waits for an answer of the server, in milliseconds. */
const ANSWER_MS = 10_000;
/**
 * A request for messages: how long the server keeps it open while there are no messages, and how often the server sends
 * a heartbeat meanwhile, both in milliseconds.
 */
const REQUEST = { expires: 30_000, idle_heartbeat: 5000 };
/**
 * If a message could not be stored as a dead letter, JetStream delivers the message again after this time, in
 * milliseconds.
 */
const DEAD_LETTER_RETRY_MS = 10_000;

type Session = Awaited<ReturnType<typeof openSession>>;

/**
 * Creates the engine for the options `relay` and `source`. As `relay` of a gateway, the engine hands events over to
 * NATS JetStream. As `source` of a worker service, the engine takes events from JetStream. The first call of `open`,
 * `publish`, `consume` or `status` connects to the server.
 *
 * `publish` resolves when the server has stored the message, and rejects at once while the server cannot be reached.
 * `consume` needs the option `service`.
 *
 * @throws PaymentsError `options_invalid` if an option is missing, wrong or misspelt. `open`, `publish` and `consume`
 *   reject with `engine_unsafe` if a setting of the stream or the consumer loses events.
 * @example
 * ```ts
 * const servers = 'nats://nats.internal:4222';
 * // gateway
 * PaymentsModule.forRoot({ ...options, relay: jetStream({ servers, stream: 'PAYMENTS' }) });
 * // worker service
 * PaymentsModule.forRoot({
 *   ...options,
 *   source: jetStream({ servers, stream: 'PAYMENTS', service: 'ledger' }),
 * });
 * ```
 */
export function jetStream(options: JetStreamOptions): Required<EventRelay & MessageSource> {
  return new JetStreamEngine(resolveOptions(options));
}

class JetStreamEngine implements EventRelay, MessageSource {
  readonly verify: boolean;
  readonly #options: ResolvedOptions;
  readonly #session: SharedConnection<Session>;
  readonly #log = engineLog();

  constructor(options: ResolvedOptions) {
    this.verify = options.verify;
    this.#options = options;
    this.#session = new SharedConnection(
      async () => {
        const session = await openSession(options, this.#log);
        void session.connection.closed().then(() => this.#session.end(session));
        return session;
      },
      ({ connection }) => connection.close(),
    );
  }

  async open(): Promise<void> {
    await this.#session.get();
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    const session = await this.#session.get();
    signal.throwIfAborted();
    const { stream } = this.#options;
    const { attributes, body } = message;
    const subject = subjectOf(stream, attributes);
    const send = (msgID?: string) =>
      session.client.publish(subject, body, {
        headers: headersOf(attributes),
        ...(msgID !== undefined && { msgID }),
        // Another stream that also takes the subject must not acknowledge the message.
        expect: { streamName: stream },
      });
    try {
      // The id is encoded, because the client would remove white space at its start and end.
      const { duplicate, seq } = await send(encode(message.id));
      // JetStream knows the id for minutes, even if the message was deleted meanwhile.
      const { streams } = session.manager;
      if (duplicate && (await streams.getMessage(stream, { seq })) === null) await send();
    } catch (error) {
      // No stream takes the subject, because the stream was deleted. The next call creates the stream, or reports that
      // it is missing.
      if ((error as Error).name === 'JetStreamNotEnabled') await this.#session.end(session);
      throw notAccepted(error as Error, stream, subject);
    }
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const { stream, maxInProgress } = this.#options;
    const service = requireService(this.#options.service);
    const session = await this.#session.get();
    const { client, connection, ackWaitMs } = session;
    const inProgress = new InProgress<JsMsg>();
    // A message must not be delivered again while it is being stored, even if that takes long.
    const working = (): void => [...inProgress.messages].forEach((message) => message.working());
    const timer = setInterval(working, Math.min(5000, ackWaitMs / 3));
    let messages: ConsumerMessages | undefined;
    void aborted(signal, session).then(() => messages?.stop());
    try {
      const consumer = await client.consumers.get(stream, service);
      while (!signal.aborted) {
        // Requests no more messages than this process may start to store. Therefore no message waits in this process while
        // another process is idle.
        const max_messages = maxInProgress - inProgress.size;
        if (max_messages === 0) {
          await inProgress.next();
          continue;
        }
        messages = await consumer.fetch({ max_messages, ...REQUEST });
        if (signal.aborted) messages.stop();
        for await (const message of messages) {
          inProgress.add(message, this.#settle(client, store, message));
        }
        if (connection.isClosed()) throw new Error('The connection to NATS was lost.');
      }
      await inProgress.end();
      // If the connection is lost, the promise of `flush()` never settles.
      await Promise.race([connection.flush(), connection.closed()]);
    } catch (error) {
      await inProgress.end();
      // The next call connects again and checks the settings, because something may be missing.
      await this.#session.end(session);
      throw error;
    } finally {
      clearInterval(timer);
      messages = undefined;
    }
  }

  async status(): Promise<EngineStatus> {
    const { manager } = await this.#session.get();
    const { stream, service } = this.#options;
    if (service === undefined) {
      await manager.streams.info(stream);
      return {};
    }
    const { dead, deadSubject } = namesOf(stream);
    const subjects_filter = deadSubject(service);
    const [{ num_pending, num_ack_pending }, { state }] = await Promise.all([
      manager.consumers.info(stream, service),
      manager.streams.info(dead, { subjects_filter }),
    ]);
    const deadLetters = state.subjects?.[subjects_filter] ?? 0;
    return { lag: num_pending + num_ack_pending, deadLetters };
  }

  async close(): Promise<void> {
    this.#log.flush();
    await this.#session.close();
  }

  async #settle(client: JetStreamClient, store: StoreMessage, message: JsMsg): Promise<void> {
    const { stream, service } = this.#options;
    const { dead, deadSubject } = namesOf(stream);
    try {
      const outcome = await store(takenMessage(message));
      if (outcome.action === 'retry') return message.nak(Math.ceil(outcome.afterMs));
      if (outcome.action === 'reject') {
        const letter = deadLetter(message, service!, outcome.code);
        const expect = { streamName: dead };
        await client.publish(deadSubject(service!), message.data, { ...letter, expect });
      }
      message.ack();
    } catch (error) {
      message.nak(DEAD_LETTER_RETRY_MS);
      const { name, message: text } = error as Error;
      const line = `A rejected message could not be stored as a dead letter. JetStream delivers the message again. ${name}: ${text}`;
      this.#log.error('dead letter', line);
    }
  }
}

/**
 * Returns an error about a message that the stream did not accept. The client's error is not the `cause` of this error,
 * because the client's error may contain the subject, which contains attributes of the event.
 */
function notAccepted({ name, message }: Error, stream: string, subject: string): Error {
  const reason = message.replaceAll(subject, `${stream}.…`);
  return new Error(`The stream "${stream}" did not accept a message. ${name}: ${reason}`);
}

/** Connects to a server, and checks the settings of the stream and the consumer. */
async function openSession(options: ResolvedOptions, log: ReturnType<typeof engineLog>) {
  const connection = await connect(options.connection);
  try {
    const timeout = ANSWER_MS;
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout });
    const ackWait = await checkSettings(connection, manager, options, log);
    const client = jetstream(connection, { timeout });
    return { connection, manager, client, ackWaitMs: millis(ackWait) };
  } catch (error) {
    await connection.close();
    throw error;
  }
}
