import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import type { JetStreamClient, JetStreamManager } from '@nats-io/jetstream';
import { connect, deadline, delay } from '@nats-io/transport-node';
import type { NatsConnection } from '@nats-io/transport-node';
import { isOpen } from './jet-stream-options.js';
import type { ResolvedOptions } from './jet-stream-options.js';

/** The longest time for an answer of the server, in milliseconds. */
const ANSWER_MS = 10_000;

/** What the delivery of messages depends on. */
export interface CheckedConsumer {
  /** The time after which JetStream delivers a message again that is not acknowledged, in milliseconds. */
  readonly ackWaitMs: number;
}

/** A connection from the moment when it works until it is lost. */
export interface Session {
  readonly connection: NatsConnection;
  readonly client: JetStreamClient;
  readonly manager: JetStreamManager;
  /** Resolves when the connection is lost. */
  readonly lost: Promise<void>;
  /** The check of the settings on this connection, once it has started. `null` if there is no consumer. */
  checked?: Promise<CheckedConsumer | null> | undefined;
}

/**
 * Connects when a session is needed and there is none. A lost connection ends its session at once, so that nothing is
 * buffered until the connection is back, and the settings are checked again.
 */
export class Sessions {
  #session: Session | null = null;
  #starting: Promise<Session> | null = null;

  /** Private also at run time, because it may contain a password. */
  readonly #option: ResolvedOptions['connection'];

  constructor(option: ResolvedOptions['connection']) {
    this.#option = option;
  }

  /** Returns the session, or connects. Rejects if the server cannot be reached. */
  async get(): Promise<Session> {
    if (this.#session !== null) return this.#session;
    this.#starting ??= this.#start().finally(() => (this.#starting = null));
    return this.#starting;
  }

  /** Ends a session that does not work. */
  async end(session: Session | null = this.#session): Promise<void> {
    if (session === null) return;
    if (this.#session === session) this.#session = null;
    if (!isOpen(this.#option)) await session.connection.close();
  }

  /** Ends the session, also one that is about to start. */
  async close(): Promise<void> {
    await this.#starting?.catch(() => undefined);
    await this.end();
  }

  async #start(): Promise<Session> {
    const connection = isOpen(this.#option) ? this.#option : await connect(this.#option);
    // An open connection may be closed, or about to reconnect; this rejects then.
    if (isOpen(this.#option)) await deadline(connection.rtt(), ANSWER_MS);
    const session: Session = {
      connection,
      client: jetstream(connection, { timeout: ANSWER_MS }),
      manager: await jetstreamManager(connection, { checkAPI: false, timeout: ANSWER_MS }),
      lost: lossOf(connection),
    };
    void session.lost.then(() => this.end(session));
    this.#session = session;
    return session;
  }
}

async function lossOf(connection: NatsConnection): Promise<void> {
  for await (const { type } of connection.status()) {
    if (type === 'disconnect' || type === 'close') return;
  }
}

/** Waits for an answer of the server, but not after the session has ended. Never rejects. */
export async function answerOf(answer: Promise<unknown>, { lost }: Session): Promise<void> {
  const late = delay(ANSWER_MS);
  await Promise.race([answer.catch(() => undefined), lost, late]);
  late.cancel();
}
