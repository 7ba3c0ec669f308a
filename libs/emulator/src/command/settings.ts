import type { PaymentsEmulator } from '../payments-emulator.js';

/** An environment variable of the application, and its value. */
export type Setting = readonly [name: string, value: string];

/** What an application needs to call the emulator's sandbox host and to verify its deliveries. */
export function settingsOf({ baseUrl, company }: PaymentsEmulator): Setting[] {
  return [
    ['PAYMENTS_BASE_URL', baseUrl],
    ['PAYMENTS_CLIENT_ID', company.clientId],
    ['PAYMENTS_CLIENT_SECRET', company.clientSecret],
    ['PAYMENTS_WEBHOOK_SECRET', company.webhookSecret],
  ];
}

/**
 * `NAME=value`, quoted such that sh, dotenv and Node's `--env-file` all read the same value. Returns
 * undefined if no quoting does, for example if the value has both kinds of quotes.
 */
export function assign([name, value]: Setting): string | undefined {
  if (/^[\w./:@%+-]+$/.test(value)) return `${name}=${value}`;
  // eslint-disable-next-line no-control-regex
  if (/[\x00-\x1f\x7f]/.test(value)) return undefined;
  // dotenv takes a backslash before the closing quote for an escape.
  if (!/'|\\$/.test(value)) return `${name}='${value}'`;
  // Within double quotes sh expands the first four, and an interactive shell the last.
  return /["$`\\!]/.test(value) ? undefined : `${name}="${value}"`;
}
