import type { PaymentsEmulatorOptions } from '../emulator.options.js';

/** Why the emulator does not listen, with a fix; undefined if the error has another cause. */
export function describeListenFailure(
  error: unknown,
  { host = '127.0.0.1', port, productionPort }: PaymentsEmulatorOptions,
): string | undefined {
  const { code, port: failed } = error as { code?: unknown; port?: unknown };
  const flag = failed === productionPort && failed !== port ? '--production-port' : '--port';
  switch (code) {
    case 'EADDRINUSE':
      return `port ${String(failed)} on ${host} is in use, perhaps by another payments-emulator. Stop that process, or choose another port with ${flag} (0 takes a free one)`;
    case 'EACCES':
      return `this user may not listen on port ${String(failed)} on ${host}. Choose a port above 1023 with ${flag}`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${host} is not an address of this machine. Choose one with --host; 127.0.0.1 is this machine only`;
    default:
      return undefined;
  }
}
