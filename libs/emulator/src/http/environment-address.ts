import type { Environment } from '../companies/company.js';

/**
 * The address of one environment's server. The emulator runs two servers, sandbox and production, in one process.
 */
export class EnvironmentAddress {
  /** Base URL without a slash at the end. Empty until the server listens. */
  url = '';

  constructor(
    /** The environment that the server belongs to. */
    readonly environment: Environment,
    /** The host name or IP address to listen on. */
    readonly hostname: string,
  ) {}

  /** Returns the URL of an invoice's checkout page. */
  checkoutUrl(transactionId: string): string {
    return `${this.url}/emulator/checkout/${transactionId}`;
  }
}
