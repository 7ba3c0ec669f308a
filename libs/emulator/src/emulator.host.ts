import type { Environment } from './companies/company.record.js';

/** One of the emulator's two hosts: which environment it is, and where it is reached. */
export class EmulatorHost {
  /** Known once it listens; without a slash at its end. */
  url = '';

  constructor(
    readonly environment: Environment,
    /** The host name it listens on. */
    readonly hostname: string,
  ) {}

  /** Where a customer opens a checkout invoice. */
  checkoutUrl(transactionId: string): string {
    return `${this.url}/emulator/checkout/${transactionId}`;
  }
}
