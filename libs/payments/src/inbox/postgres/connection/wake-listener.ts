import type { Client } from 'pg';
import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import { Backoff, STORE_BACKOFF } from '../../../runtime/backoff.js';
import { OutageLog } from './outage-log.js';

/**
 * Calls listeners when another process notifies, at each poll, and after each new connection, since notifications before
 * it are lost. It connects for the first listener, and again with backoff whenever the connection is cut.
 */
export class WakeListener {
  readonly #listeners = new Set<() => void>();
  readonly #outage = new OutageLog('The connection for notifications of new payment events');
  readonly #backoff: Backoff;
  #client: Client | null = null;
  #started = false;
  #closed = false;
  #cancelRetry: () => void = () => {};
  #cancelPoll: () => void = () => {};

  constructor(
    private readonly connect: () => Client,
    private readonly channel: string,
    private readonly pollMs: number,
    private readonly runtime: PaymentsRuntime,
  ) {
    this.#backoff = new Backoff(runtime, STORE_BACKOFF);
  }

  add(listener: () => void): () => void {
    // A wrapper, so that one function can be added twice and each removed by itself.
    const own = (): void => listener();
    this.#listeners.add(own);
    if (!this.#started && !this.#closed) {
      this.#started = true;
      void this.#listen();
      this.#poll();
    }
    return () => this.#listeners.delete(own);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#cancelRetry();
    this.#cancelPoll();
    const client = this.#client;
    this.#client = null;
    await client?.end().catch(() => {});
  }

  #poll(): void {
    this.#cancelPoll = this.runtime.schedule(this.pollMs, () => {
      this.wake();
      this.#poll();
    });
  }

  /** Never rejects. */
  async #listen(): Promise<void> {
    let client: Client;
    try {
      client = this.connect();
    } catch (error) {
      this.#lost(null, error);
      return;
    }
    this.#client = client;
    client.on('error', (error) => this.#lost(client, error));
    client.on('end', () => this.#lost(client, new Error('the connection has ended')));
    client.on('notification', () => this.wake());
    try {
      await client.connect();
      await client.query(`LISTEN "${this.channel}"`);
      this.#backoff.reset();
      this.#outage.worked();
      this.wake();
    } catch (error) {
      this.#lost(client, error);
    }
  }

  /** Called more than once for one loss: by its error, and by its end. */
  #lost(client: Client | null, error: unknown): void {
    if (this.#closed || client !== this.#client) return;
    this.#client = null;
    this.#outage.failed(error);
    client?.end().catch(() => {});
    this.#cancelRetry = this.runtime.schedule(this.#backoff.nextMs(), () => void this.#listen());
  }

  wake(): void {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#outage.failed(error);
      }
    }
  }
}
