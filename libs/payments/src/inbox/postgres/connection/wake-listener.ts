import type { Client } from 'pg';
import type { PaymentsRuntime } from '../../../payments.runtime.js';
import { OutageLog } from './outage-log.js';

const FIRST_RETRY_MS = 100;
const MAX_RETRY_MS = 10_000;

/**
 * Calls those who wait for work: when another instance says so, at each poll, and when the connection that is
 * listened on was made anew, since what was said meanwhile is lost. The connection is made for the first one
 * who waits, and again, with growing pauses, whenever it is cut.
 */
export class WakeListener {
  readonly #listeners = new Set<() => void>();
  readonly #outage = new OutageLog('The connection for notifications of new payment events');
  #client: Client | null = null;
  #attempts = 0;
  #started = false;
  #closed = false;
  #cancelRetry: () => void = () => {};
  #cancelPoll: () => void = () => {};

  constructor(
    private readonly connect: () => Client,
    private readonly channel: string,
    private readonly pollMs: number,
    private readonly runtime: PaymentsRuntime,
  ) {}

  add(listener: () => void): () => void {
    // A wrapper of its own, so that one function may be added twice and each be removed by itself.
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
      this.#attempts = 0;
      this.#outage.worked();
      this.wake();
    } catch (error) {
      this.#lost(client, error);
    }
  }

  /** Told more than once of one loss: by its error, and by its end. */
  #lost(client: Client | null, error: unknown): void {
    if (this.#closed || client !== this.#client) return;
    this.#client = null;
    this.#outage.failed(error);
    client?.end().catch(() => {});
    const longest = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** this.#attempts);
    this.#attempts += 1;
    // Half of it by chance, so that a fleet does not come back in one moment.
    const pauseMs = longest * (0.5 + this.runtime.random() / 2);
    this.#cancelRetry = this.runtime.schedule(pauseMs, () => void this.#listen());
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
