import { parseArgs } from 'node:util';
import type { ParseArgsConfig } from 'node:util';
import { messageOf } from '../emulator-errors.js';
import type { PaymentsEmulatorOptions } from '../emulator-options.js';

export type Command = { readonly do: 'help' | 'version' } | StartCommand;

export interface StartCommand {
  readonly do: 'start';
  readonly options: PaymentsEmulatorOptions;
  readonly quiet: boolean;
  /** The path of the `.env` file in which the command saves the application's settings. */
  readonly envFile: string | undefined;
}

/** An error about an invalid command line. The command prints the message of this error without a stack trace. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';
}

const FLAGS = {
  host: { type: 'string' },
  port: { type: 'string' },
  'production-port': { type: 'string' },
  'public-url': { type: 'string' },
  'production-public-url': { type: 'string' },
  'control-token': { type: 'string' },
  'allow-private-webhooks': { type: 'boolean' },
  'allow-production': { type: 'boolean' },
  'webhook-url': { type: 'string' },
  companies: { type: 'string' },
  'webhook-secret': { type: 'string' },
  'client-id': { type: 'string' },
  'client-secret': { type: 'string' },
  'production-client-id': { type: 'string' },
  'production-client-secret': { type: 'string' },
  seed: { type: 'string' },
  'save-env': { type: 'string' },
  redeliver: { type: 'string' },
  faults: { type: 'string' },
  'service-name': { type: 'string' },
  'token-lifetime': { type: 'string' },
  'pending-status': { type: 'string' },
  'failed-status': { type: 'string' },
  currency: { type: 'string' },
  'log-size': { type: 'string' },
  quiet: { type: 'boolean', short: 'q' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean', short: 'v' },
} as const;

/** The default ports of the command are fixed, so that an application's configuration can contain them. */
export const DEFAULT_PORT = 4010;
export const DEFAULT_PRODUCTION_PORT = 4011;

export const DEFAULT_URL = `http://127.0.0.1:${DEFAULT_PORT}`;

/** @throws CommandLineError if a flag is unknown or has an invalid value */
export function parseCommandLine(args: string[]): Command {
  const flags = parseFlags({ args, options: FLAGS }).values;
  if (flags.help) return { do: 'help' };
  if (flags.version) return { do: 'version' };
  const options: PaymentsEmulatorOptions = {
    host: flags.host,
    port: whole('--port', flags.port) ?? DEFAULT_PORT,
    productionPort: whole('--production-port', flags['production-port']) ?? DEFAULT_PRODUCTION_PORT,
    publicUrl: flags['public-url'],
    productionPublicUrl: flags['production-public-url'],
    controlToken: flags['control-token'],
    allowPrivateWebhooks: flags['allow-private-webhooks'],
    allowProduction: flags['allow-production'],
    webhookUrl: flags['webhook-url'],
    companies: flags.companies?.split(',').map((id) => id.trim()),
    webhookSecret: flags['webhook-secret'],
    clientId: flags['client-id'],
    clientSecret: flags['client-secret'],
    productionClientId: flags['production-client-id'],
    productionClientSecret: flags['production-client-secret'],
    seed: flags.seed,
    freshIds: true,
    redeliver: schedule(flags.redeliver),
    faults: json('--faults', flags.faults, '{"delivery":{"duplicate":{}}}'),
    serviceName: flags['service-name'],
    tokenLifetime: whole('--token-lifetime', flags['token-lifetime']),
    pendingStatus: flags['pending-status'],
    failedStatus: flags['failed-status'],
    currency: flags.currency,
    logSize: whole('--log-size', flags['log-size']),
  };
  return { do: 'start', options, quiet: flags.quiet ?? false, envFile: flags['save-env'] };
}

/** The flags of every command that controls a running emulator. */
export const RUNNING_FLAGS = {
  company: { type: 'string' },
  url: { type: 'string', default: DEFAULT_URL },
  'control-token': { type: 'string' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** @throws CommandLineError if a flag is unknown or has no value, or if there is an argument that is not a flag */
export function parseFlags<const T extends ParseArgsConfig>(config: T) {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new CommandLineError(messageOf(error));
  }
}

function whole(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,10}$/.test(text)) {
    throw new CommandLineError(`${flag} takes a whole number, not "${text}"`);
  }
  return Number(text);
}

/**
 * `1s,30s,5m` means waits of 1 s, 30 s and 5 min before the second, third and fourth attempt. `none` means one attempt.
 */
function schedule(text: string | undefined): number[] | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return [];
  return text.split(',').map((wait) => {
    const ms = parseDuration(wait.trim());
    if (ms !== undefined) return ms;
    throw new CommandLineError(
      `--redeliver takes a list of times such as 500ms,1s,5m,1h, or the word none, not "${text}"`,
    );
  });
}

/** Converts a time with a unit, such as 500ms, 1s, 5m or 1h, to milliseconds. Returns undefined for other text. */
export function parseDuration(text: string): number | undefined {
  const [, number, unit] = /^(\d{1,9})(ms|s|m|h)$/.exec(text) ?? [];
  if (!number || !unit) return undefined;
  return Number(number) * { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }[unit as 'ms'];
}

/** @throws CommandLineError if the value is not valid JSON; the message contains `example` */
export function json(flag: string, text: string | undefined, example: string): object | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    throw new CommandLineError(`${flag} takes JSON, such as '${example}'`);
  }
}
