import { Logger } from '@nestjs/common';
import type { Msg } from '@nats-io/transport-node';
import { ThrottledLog } from 'nestjs-payments';
import type {
  EngineCall,
  EngineMessage,
  EventRelay,
  MessageSource,
  StoreMessage,
} from 'nestjs-payments';
import { optionsInvalid, resolveOptions } from './jet-stream-options.js';
import type { JetStreamOptions, ResolvedOptions } from './jet-stream-options.js';
import { deadLetter, headersOf, messageIdOf, subjectOf, takenMessage } from './message.js';
import { acknowledge, Pull, returnToServer } from './pull.js';
import { Sessions } from './session.js';
import type { Session } from './session.js';
import { checkSettings, namesOf } from './stream-settings.js';

/** The time after which JetStream delivers a message again that could not be kept as a dead letter. */
const DEAD_LETTER_RETRY_MS = 10_000;

/**
 * Hands the events of a gateway over to NATS JetStream, as the option `relay`; takes them from it in a worker service, as
 * the option `source`. Nothing is connected before `open`, `publish` or `consume` is called.
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
export function jetStream(
  options: JetStreamOptions & { service: string },
): EventRelay & MessageSource;
export function jetStream(options: JetStreamOptions): EventRelay;
export function jetStream(options: JetStreamOptions): EventRelay & MessageSource {
  return new JetStreamEngine(resolveOptions(options));
}

class JetStreamEngine implements EventRelay, MessageSource {
  readonly verify: boolean;
  readonly #options: ResolvedOptions;
  readonly #sessions: Sessions;
  readonly #log: ThrottledLog;

  constructor(options: ResolvedOptions) {
    this.verify = options.verify;
    this.#options = options;
    this.#sessions = new Sessions(options.connection);
    this.#log = new ThrottledLog(new Logger('PaymentJetStream'));
  }

  async open(): Promise<void> {
    await this.#checkedSession();
  }

  async publish(message: EngineMessage, { signal }: EngineCall): Promise<void> {
    await unlessAborted(() => this.#publish(message), signal);
  }

  async consume(store: StoreMessage, { signal }: EngineCall): Promise<void> {
    const { stream, service, maxInProgress } = this.#options;
    if (service === undefined) {
      throw optionsInvalid('"service" is missing. It is required to take events.');
    }
    const session = await this.#sessionUnlessAborted(signal);
    if (session === null) return;
    const consumer = await session.checked;
    if (!consumer) throw new Error(`The consumer "${service}" does not exist.`);
    const handle = (msg: Msg): Promise<void> => this.#handle(session, service, store, msg);
    const options = { stream, service, maxInProgress, handle, ...consumer };
    try {
      await new Pull(session, options).run(signal);
    } catch (error) {
      // The next call connects again and checks the settings, because something may be missing.
      await this.#sessions.end(session);
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#log.flush();
    await this.#sessions.close();
  }

  async #sessionUnlessAborted(signal: AbortSignal): Promise<Session | null> {
    try {
      return await unlessAborted(() => this.#checkedSession(), signal);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }

  async #checkedSession(): Promise<Session> {
    const session = await this.#sessions.get();
    session.checked ??= checkSettings(session, this.#options, (line) => this.#log.warn(line, line));
    try {
      await session.checked;
    } catch (error) {
      session.checked = undefined;
      throw error;
    }
    return session;
  }

  async #publish(message: EngineMessage): Promise<void> {
    const session = await this.#checkedSession();
    const { client, manager } = session;
    const { stream } = this.#options;
    const { attributes, body } = message;
    const subject = subjectOf(stream, attributes);
    const send = (msgID?: string) =>
      client.publish(subject, body, {
        headers: headersOf(attributes),
        ...(msgID !== undefined && { msgID }),
        // Another stream that takes the subject must not acknowledge the message.
        expect: { streamName: stream },
      });
    try {
      const { duplicate, seq } = await send(messageIdOf(message));
      // JetStream knows the id for minutes, even if the message was deleted meanwhile.
      if (duplicate && (await manager.streams.getMessage(stream, { seq })) === null) await send();
    } catch (error) {
      // No stream takes the subject: the stream was deleted. The next call creates it, or reports this.
      if ((error as Error).name === 'JetStreamNotEnabled') session.checked = undefined;
      throw notAccepted(error as Error, stream, subject);
    }
  }

  async #handle(session: Session, service: string, store: StoreMessage, msg: Msg): Promise<void> {
    try {
      const outcome = await store(takenMessage(msg));
      if (outcome.action === 'retry') return returnToServer(msg, outcome.afterMs);
      if (outcome.action === 'reject') await this.#keep(session, service, msg, outcome.code);
      acknowledge(msg);
    } catch (error) {
      returnToServer(msg, DEAD_LETTER_RETRY_MS);
      const { name, message } = error as Error;
      const line = `A rejected message could not be kept as a dead letter, and returns to JetStream. ${name}: ${message}`;
      this.#log.error('dead letter', line);
    }
  }

  /** Keeps a message in the stream of dead letters. */
  async #keep({ client }: Session, service: string, msg: Msg, code: string): Promise<void> {
    const { dead, deadSubject } = namesOf(this.#options);
    await client.publish(deadSubject(service), msg.data, {
      ...deadLetter(msg, service, code),
      expect: { streamName: dead },
    });
  }
}

/** The error of the client is not the cause, because it may contain the subject, and thereby attributes. */
function notAccepted({ name, message }: Error, stream: string, subject: string): Error {
  const reason = message.replaceAll(subject, `${stream}.…`);
  return new Error(`The stream "${stream}" did not accept a message. ${name}: ${reason}`);
}

async function unlessAborted<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work(), aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
