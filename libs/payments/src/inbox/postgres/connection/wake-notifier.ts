import type { PaymentsRuntime } from '../../../runtime/payments-runtime.js';
import type { ConnectionSource } from './connection-source.js';

/** At most one notification in this time. More would contain nothing new. */
const QUIET_MS = 25;

/**
 * Notifies all processes that deliveries have become due. After the transaction instead of in it: in the whole server,
 * PostgreSQL commits only one notifying transaction at a time, its wait for the disk included. If a notification is lost
 * with its process, the next poll replaces it.
 */
export class WakeNotifier {
  #state: 'quiet' | 'sent' | 'again' = 'quiet';
  #sending: Promise<void> = Promise.resolve();

  constructor(
    private readonly source: ConnectionSource,
    private readonly channel: string,
    private readonly runtime: PaymentsRuntime,
  ) {}

  /** The first at once, those that follow it together. Never throws. */
  notify(): void {
    if (this.#state !== 'quiet') {
      this.#state = 'again';
      return;
    }
    this.#state = 'sent';
    this.#send();
    this.runtime.schedule(QUIET_MS, () => {
      const again = this.#state === 'again';
      this.#state = 'quiet';
      if (again) this.notify();
    });
  }

  /** Sends the notification that waits. */
  async flush(): Promise<void> {
    if (this.#state === 'again') this.#send();
    this.#state = 'quiet';
    await this.#sending;
  }

  #send(): void {
    const sent = this.source.query('SELECT pg_notify($1, $2)', [this.channel, '']);
    this.#sending = sent.then(
      () => {},
      // It is a hint; the others poll.
      () => {},
    );
  }
}
