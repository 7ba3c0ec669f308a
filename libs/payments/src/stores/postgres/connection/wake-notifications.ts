import type { Client } from 'pg';
import { ModuleLogger, ThrottledLog } from '../../../errors/module-log.js';
import { describeError } from '../../../errors/payments-error.js';
import { Backoff, STORE_BACKOFF } from '../../../runtime/backoff.js';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ResolvedPostgresOptions } from '../postgres-options.js';
import type { ConnectionSource } from './connection-source.js';

/**
 * At most one notification is sent in this many milliseconds, because a second notification would contain nothing new.
 */
const NOTIFY_INTERVAL_MS = 25;

/**
 * Notifies all processes that deliveries have become due. The notification is sent after the transaction, not in it.
 * Otherwise, transactions would wait for each other, because PostgreSQL commits only one transaction with a
 * notification at a time, including the wait for the disk. If the process exits before it has sent a notification, the
 * other processes find the deliveries when they next look for due deliveries.
 */
export class WakeNotifier {
  #state: 'idle' | 'sent' | 'repeat' = 'idle';
  #sending: Promise<void> = Promise.resolve();

  constructor(
    private readonly source: ConnectionSource,
    private readonly channel: string,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /**
   * Sends the first notification immediately, and one notification for all calls that follow within the interval. Never
   * throws.
   */
  notify(): void {
    if (this.#state !== 'idle') {
      this.#state = 'repeat';
      return;
    }
    this.#state = 'sent';
    this.#send();
    this.runtime.schedule(NOTIFY_INTERVAL_MS, () => {
      const repeat = this.#state === 'repeat';
      this.#state = 'idle';
      if (repeat) this.notify();
    });
  }

  /** Sends the notification that waits for the end of the interval, and resolves when the notification is sent. */
  async flush(): Promise<void> {
    if (this.#state === 'repeat') this.#send();
    this.#state = 'idle';
    await this.#sending;
  }

  #send(): void {
    const sent = this.source.query('SELECT pg_notify($1, $2)', [this.channel, '']);
    this.#sending = sent.then(
      () => {},
      // A lost notification does no harm, because the other processes regularly look for due deliveries.
      () => {},
    );
  }
}

/**
 * Calls its listeners when a process sends a notification, every `pollMs` milliseconds, and after each new connection,
 * because notifications are lost while there is no connection. Reconnects with backoff.
 */
export class WakeListener {
  readonly #listeners = new Set<() => void>();
  readonly #log: ThrottledLog;
  readonly #backoff: Backoff;
  #client: Client | null = null;
  #started = false;
  #closed = false;
  #cancelRetry: () => void = () => {};
  #cancelPoll: () => void = () => {};

  constructor(
    private readonly source: ConnectionSource,
    private readonly options: Pick<ResolvedPostgresOptions, 'schema' | 'pollMs'>,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#log = new ThrottledLog(new ModuleLogger('PostgresInbox'), runtime);
    this.#backoff = new Backoff(runtime, STORE_BACKOFF);
  }

  add(listener: () => void): () => void {
    // Wraps the listener in a new function, because a Set would contain a listener that is added twice only once.
    const added = (): void => listener();
    this.#listeners.add(added);
    if (!this.#started && !this.#closed) {
      this.#started = true;
      void this.#connect();
      this.#poll();
    }
    return () => void this.#listeners.delete(added);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#cancelRetry();
    this.#cancelPoll();
    const client = this.#client;
    this.#client = null;
    if (client !== null) await this.source.endWithinTimeout(client.end());
  }

  #wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #poll(): void {
    this.#cancelPoll = this.runtime.schedule(this.options.pollMs, () => {
      this.#poll();
      this.#wake();
    });
  }

  /** Connects and subscribes to the notifications. Never rejects. */
  async #connect(): Promise<void> {
    let client: Client;
    try {
      client = this.source.createClient();
    } catch (error) {
      this.#reconnect(null, error);
      return;
    }
    this.#client = client;
    client.on('error', (error) => this.#reconnect(client, error));
    client.on('end', () => this.#reconnect(client, new Error('the connection has ended')));
    client.on('notification', () => this.#wake());
    try {
      await client.connect();
      await client.query(`LISTEN "${this.options.schema}"`);
      this.#backoff.reset();
      this.#wake();
    } catch (error) {
      this.#reconnect(client, error);
    }
  }

  /** For one connection, the events `error` and `end` may both call this method; only the first call has an effect. */
  #reconnect(client: Client | null, error: unknown): void {
    if (this.#closed || client !== this.#client) return;
    this.#client = null;
    this.#log.error(
      'connection',
      () =>
        `The connection for notifications of new payment events failed: ${describeError(error)}. The inbox connects ` +
        'again. Until then, a process may start to handle a new event later ("pollMs").',
    );
    client?.end().catch(() => {});
    this.#cancelRetry = this.runtime.schedule(this.#backoff.nextMs(), () => void this.#connect());
  }
}
