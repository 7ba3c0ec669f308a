import { Logger } from '@nestjs/common';
import { describeError } from '../../../errors/payments-error.js';

/**
 * Logs once that something is out of reach and once that it is back, so that an outage under load is one line in the log
 * instead of one per delivery.
 */
export class OutageLog {
  readonly #logger = new Logger('PostgresInbox');
  #out = false;

  constructor(private readonly what: string) {}

  failed(thrown: unknown): void {
    if (!this.#out) this.#logger.error(`${this.what} failed: ${describeError(thrown)}`);
    this.#out = true;
  }

  worked(): void {
    if (this.#out) this.#logger.log(`${this.what} works again`);
    this.#out = false;
  }
}
