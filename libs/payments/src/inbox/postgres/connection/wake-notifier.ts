import type { PaymentsRuntime } from '../../../payments.runtime.js';
import type { ConnectionSource } from './connection-source.js';

/** At most one notification in this time: one says as much as a hundred. */
const QUIET_MS = 25;

/**
 * Tells all instances that deliveries have become due. After the transaction and not within it: PostgreSQL
 * lets only one transaction that notifies commit at a time, in the whole server, its wait for the disk
 * included. One that is lost, with the process that was to send it, is made up for by the next poll.
 */
export class WakeNotifier {
  #state: 'quiet' | 'told' | 'again' = 'quiet';
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
    this.#state = 'told';
    this.#send();
    this.runtime.schedule(QUIET_MS, () => {
      const again = this.#state === 'again';
      this.#state = 'quiet';
      if (again) this.notify();
    });
  }

  /** Sends what is still to be told. */
  async flush(): Promise<void> {
    if (this.#state === 'again') this.#send();
    this.#state = 'quiet';
    await this.#sending;
  }

  #send(): void {
    const sent = this.source.query('SELECT pg_notify($1, $2)', [this.channel, '']);
    this.#sending = sent.then(
      () => {},
      // A hint: whoever misses it polls.
      () => {},
    );
  }
}
