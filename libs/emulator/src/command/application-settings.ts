import type { PaymentsEmulator } from '../payments-emulator.js';

/** Name and value of an environment variable of the application. */
export type Setting = readonly [name: string, value: string];

/** Returns the settings with which an application calls the emulator's sandbox host and verifies its deliveries. */
export function applicationSettings({ baseUrl, company }: PaymentsEmulator): Setting[] {
  return [
    ['PAYMENTS_BASE_URL', baseUrl],
    ['PAYMENTS_CLIENT_ID', company.clientId],
    ['PAYMENTS_CLIENT_SECRET', company.clientSecret],
    ['PAYMENTS_WEBHOOK_SECRET', company.webhookSecret],
  ];
}

/**
 * Returns `NAME=value`, quoted so that sh, dotenv and Node's `--env-file` read the same value. Returns undefined if no
 * quoting achieves this, for example if the value contains both kinds of quotes.
 */
export function assignment([name, value]: Setting): string | undefined {
  if (/^[\w./:@%+-]+$/.test(value)) return `${name}=${value}`;
  // eslint-disable-next-line no-control-regex
  if (/[\x00-\x1f\x7f]/.test(value)) return undefined;
  // dotenv treats a backslash before the closing quote as an escape.
  if (!/'|\\$/.test(value)) return `${name}='${value}'`;
  // Within double quotes, sh expands the first four characters, and an interactive shell the last one.
  return /["$`\\!]/.test(value) ? undefined : `${name}="${value}"`;
}
