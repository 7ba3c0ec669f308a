import { createInbox, nanos } from '@nats-io/transport-node';
import type { Msg, Subscription } from '@nats-io/transport-node';
import { answerOf } from './session.js';
import type { Session } from './session.js';

/** How long a request for messages waits at the server. */
const REQUEST_MS = 30_000;
/** The longest time between two signs of life, in both directions. */
const BEAT_MS = 5000;
/** The time without a sign of life of the server after which the delivery has failed. */
const SILENT_MS = 20_000;

/** The consumer from which messages are taken, and what is done with them. */
interface PullOptions {
  readonly stream: string;
  readonly service: string;
  readonly maxInProgress: number;
  readonly ackWaitMs: number;
  /** Handles a message and acknowledges it. Never rejects. */
  readonly handle: (msg: Msg) => Promise<void>;
}

/**
 * Takes messages from a pull consumer. There is at most one request for messages at the server, and it asks for no more
 * messages than this process may start to handle. So no message waits in this process while another process is idle.
 * The consumers of the client library buffer messages.
 */
export class Pull {
  readonly #inProgress = new Map<Msg, Promise<void>>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #inbox: string;
  readonly #beatMs: number;
  #isEnding = false;
  /** The number of messages that the server may still send for the current request. */
  #requested = 0;
  #silentMs = 0;

  constructor(
    private readonly session: Session,
    private readonly options: PullOptions,
  ) {
    const { options: own } = session.connection as { options?: { inboxPrefix?: string } };
    this.#inbox = createInbox(own?.inboxPrefix);
    this.#beatMs = Math.min(BEAT_MS, Math.max(100, options.ackWaitMs / 3));
  }

  /**
   * Takes messages until the signal is aborted, and resolves when all are settled. Rejects after the same if the
   * connection is lost, or the server ends the delivery.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { connection, lost } = this.session;
    const subscription = connection.subscribe(this.#inbox, {
      callback: (error, msg) => (error === null ? this.#receive(msg) : this.#fail(error.message)),
    });
    const stop = (): void => this.#ended.resolve();
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    void lost.then(() => this.#fail('The connection to NATS was lost.'));
    const timer = setInterval(() => this.#beat(), this.#beatMs);
    this.#request();
    try {
      await this.#ended.promise;
    } finally {
      signal.removeEventListener('abort', stop);
      await this.#end(subscription);
      clearInterval(timer);
    }
  }

  async #end(subscription: Subscription): Promise<void> {
    this.#isEnding = true;
    // Messages that are on their way still arrive, and return to the server.
    await answerOf(subscription.drain(), this.session);
    await Promise.all(this.#inProgress.values());
    await answerOf(this.session.connection.flush(), this.session);
  }

  #receive(msg: Msg): void {
    this.#silentMs = 0;
    if (msg.subject === this.#inbox) return this.#status(msg);
    this.#requested -= 1;
    if (this.#isEnding) return returnToServer(msg, 0);
    const handled = this.options.handle(msg).then(() => {
      this.#inProgress.delete(msg);
      this.#request();
    });
    this.#inProgress.set(msg, handled);
  }

  /** A message of the server itself, about the current request. */
  #status({ headers }: Msg): void {
    const [code, description] = [headers?.code, headers?.description];
    if (code === 100) return;
    if (code !== 404 && code !== 408) {
      return this.#fail(`JetStream ended the delivery of messages: ${code} ${description}`);
    }
    this.#requested = 0;
    this.#request();
  }

  #request(): void {
    const { stream, service, maxInProgress } = this.options;
    const batch = maxInProgress - this.#inProgress.size;
    if (this.#isEnding || this.#requested > 0 || batch === 0) return;
    this.#requested = batch;
    this.#silentMs = 0;
    const [expires, idle_heartbeat] = [nanos(REQUEST_MS), nanos(this.#beatMs)];
    try {
      this.session.connection.publish(
        `$JS.API.CONSUMER.MSG.NEXT.${stream}.${service}`,
        JSON.stringify({ batch, expires, idle_heartbeat }),
        { reply: this.#inbox },
      );
    } catch (error) {
      this.#fail((error as Error).message);
    }
  }

  /** Keeps the messages in progress from being delivered again, and checks that the server is alive. */
  #beat(): void {
    for (const msg of this.#inProgress.keys()) msg.respond('+WPI');
    if (this.#requested === 0) return;
    this.#silentMs += this.#beatMs;
    if (this.#silentMs > SILENT_MS) this.#fail('JetStream does not answer.');
  }

  #fail(reason: string): void {
    this.#ended.reject(new Error(reason));
  }
}

/** Acknowledges a message: it is stored, or kept as a dead letter. */
export function acknowledge(msg: Msg): void {
  msg.respond('+ACK');
}

/** Lets the server deliver a message again after this time, in milliseconds. */
export function returnToServer(msg: Msg, afterMs: number): void {
  msg.respond(
    afterMs > 0 ? `-NAK ${JSON.stringify({ delay: nanos(Math.round(afterMs)) })}` : '-NAK',
  );
}
