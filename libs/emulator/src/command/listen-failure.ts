import type { PaymentsEmulatorOptions } from '../emulator-options.js';

/** Returns the reason why the emulator cannot listen, and a fix. Returns undefined for other errors. */
export function describeListenFailure(
  error: unknown,
  { host = '127.0.0.1', port, productionPort }: PaymentsEmulatorOptions,
): string | undefined {
  const { code, port: failed } = error as { code?: unknown; port?: unknown };
  const flag = failed === productionPort && failed !== port ? '--production-port' : '--port';
  switch (code) {
    case 'EADDRINUSE':
      return `port ${String(failed)} on ${host} is in use, perhaps by another payments-emulator. Stop that process, or choose another port with ${flag} (0 selects a free one)`;
    case 'EACCES':
      return `this user is not allowed to listen on port ${String(failed)} on ${host}. Choose a port above 1023 with ${flag}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine. Choose one with --host; 127.0.0.1 is this machine only`;
    default:
      return undefined;
  }
}
