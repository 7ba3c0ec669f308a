import { settingsPrefix } from '../companies/company.js';
import type { PaymentsEmulator } from '../payments-emulator.js';

export type Setting = readonly [name: string, value: string];

/**
 * Returns the settings with which an application calls the emulator's sandbox host and verifies the emulator's
 * deliveries. If the emulator has several companies, the names of a company's settings start with the company's id, for
 * example `ACME_CLIENT_ID`.
 */
export function applicationSettings(emulator: PaymentsEmulator): Setting[] {
  const companies = emulator.companies();
  const settings = companies.flatMap(
    ({ companyId, clientId, clientSecret, webhookSecret }): Setting[] => {
      const prefix = companies.length === 1 ? 'PAYMENTS' : settingsPrefix(companyId);
      return [
        [`${prefix}_CLIENT_ID`, clientId],
        [`${prefix}_CLIENT_SECRET`, clientSecret],
        [`${prefix}_WEBHOOK_SECRET`, webhookSecret],
      ];
    },
  );
  return [['PAYMENTS_BASE_URL', emulator.baseUrl], ...settings];
}

/**
 * Returns `NAME=value`, quoted so that sh, dotenv and Node's `--env-file` read the same value. Returns undefined if
 * neither kind of quotes gives the same value in all of these programs, for example if the value contains both kinds of
 * quotes.
 */
export function assignment([name, value]: Setting): string | undefined {
  if (/^[\w./:@%+-]+$/.test(value)) return `${name}=${value}`;
  // eslint-disable-next-line no-control-regex
  if (/[\x00-\x1f\x7f]/.test(value)) return undefined;
  // dotenv treats a backslash before the closing quote as an escape.
  if (!/'|\\$/.test(value)) return `${name}='${value}'`;
  // Within double quotes, sh treats the first four of these characters specially, and an interactive shell also `!`.
  return /["$`\\!]/.test(value) ? undefined : `${name}="${value}"`;
}
