import type { Environment } from '../companies/company.js';

/** The address of one of the two servers, sandbox and production, that the emulator runs in one process. */
export class EnvironmentAddress {
  /** Base URL without a slash at the end. Empty until the server listens. */
  url = '';

  constructor(
    readonly environment: Environment,
    /** The host name or IP address to listen on. */
    readonly hostname: string,
  ) {}

  checkoutUrl(transactionId: string): string {
    return `${this.url}/emulator/checkout/${transactionId}`;
  }
}
