import type { DeliveryAttempt } from '../deliveries/delivery-attempt.js';
import type { PaymentsEmulator } from '../payments-emulator.js';
import { DEFAULT_PORT } from './command-flags.js';
import { assignment, applicationSettings } from './application-settings.js';

export interface CommandOutput {
  out(text: string): void;
  err(text: string): void;
  /** Aborts when no program reads the output any more, for example because the program after a pipe has ended. */
  readonly closed?: AbortSignal;
}

/**
 * Returns the text that the command prints when the emulator has started. The text contains the settings of the
 * application as `export` lines without comments. These lines work in a shell, and in a `.env` file that dotenv or
 * Node's `--env-file` reads.
 */
export function describeStart(emulator: PaymentsEmulator, envFile?: string): string {
  const { baseUrl, productionBaseUrl, seed, controlToken } = emulator;
  const companies = emulator.companies();
  const settings = applicationSettings(emulator);
  const unquotable = settings.filter((setting) => assignment(setting) === undefined);
  const url = baseUrl === `http://127.0.0.1:${DEFAULT_PORT}` ? '' : ` --url ${baseUrl}`;
  const token = controlToken === undefined ? '' : ` --control-token ${quoted(controlToken)}`;
  return `payments-emulator
  sandbox     ${baseUrl}
  production  ${productionBaseUrl} (its credentials are on the page /emulator)
  pages       ${baseUrl}/emulator (deliveries, faults), ${baseUrl}/emulator/stk (STK push prompts)
${
  controlToken === undefined
    ? ''
    : `  token       ${controlToken} (the password of the pages and controls, because other machines can reach them)\n`
}${companies
    .map(
      ({ companyId, webhook }) =>
        `  webhook     ${webhook.url ?? `none yet: start with --webhook-url, or PUT ${baseUrl}/emulator/companies/${companyId}/webhook`}\n`,
    )
    .join('')}  seed        ${seed} (start with --seed to keep the settings)

Settings of the application, to paste into its shell or to save as .env${envFile === undefined ? '' : ` (saved in ${envFile})`}:

${settings
  .flatMap((setting) => assignment(setting) ?? [])
  .map((line) => `export ${line}\n`)
  .join(
    '',
  )}${unquotable.map(([name]) => `\n${name} is not listed, because no quoting works both in a shell and in .env. Copy the value that you passed.\n`).join('')}
To send the event of a payment:

  payments-emulator trigger transaction.completed --amount 350 --reference order-1${companies.length > 1 ? ` --company ${companies[0]!.companyId}` : ''}${url}${token}

`;
}

/** Quotes an argument for a shell. */
function quoted(text: string): string {
  return /^[\w./:@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

export function describeDelivery(delivery: DeliveryAttempt): string {
  const { eventType, companyId, attempt, state, response, failure, durationMs, faults } = delivery;
  return [
    eventType,
    companyId,
    `attempt ${attempt}`,
    state,
    response?.status ?? (failure && failure.code !== state ? failure.code : ''),
    durationMs === undefined ? '' : `${durationMs} ms`,
    faults.length > 0 ? `(${faults.join(', ')})` : '',
  ]
    .filter((part) => part !== '')
    .join('  ');
}
