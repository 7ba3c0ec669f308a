import { DEFAULT_COMPANY } from '../companies/company-store.js';
import {
  CommandLineError,
  DEFAULT_URL,
  json,
  parseDuration,
  parseFlags,
  RUNNING_FLAGS,
} from './command-flags.js';
import type { CommandOutput } from './command-output.js';
import type { ControlRequest } from './emulator-client.js';
import { EmulatorClient } from './emulator-client.js';

const HELP = `Controls a running emulator.

Usage: payments-emulator webhooks off|on       switches an outage of all webhook deliveries on or off
       payments-emulator complete ID           completes a transaction
       payments-emulator decline ID            declines a transaction; no event is sent
       payments-emulator fault NAME JSON|off   sets or removes a fault, for example:
                                                 fault api.notFound '{"forMs":60000}'
                                                 fault api.otherStatus '{"next":2}'

  --after TIME         complete only: completes the transaction after this time of the emulator's
                       clock, such as 30s, 10m or 24h
  --company ID         webhooks and fault only (default: the company that the emulator started with)
  --url URL            the emulator's address (default ${DEFAULT_URL})
  --control-token TOKEN
                       the token that the emulator printed; needed if other machines can reach the emulator
  -h, --help           prints this help

Exit codes: 0 done, 1 rejected by the emulator, 2 invalid flags.
`;

const FLAGS = { ...RUNNING_FLAGS, after: { type: 'string' } } as const;

export const CONTROL_COMMANDS: readonly string[] = ['webhooks', 'complete', 'decline', 'fault'];

/** The request that a command sends, and the text that the command prints if the emulator accepts the request. */
interface ControlCommand {
  readonly request: ControlRequest;
  readonly done: string;
}

/**
 * Runs one of the {@link CONTROL_COMMANDS}, and returns the exit code.
 *
 * @throws CommandLineError for invalid flags, Error if no emulator responds or if the emulator rejects the request
 */
export async function runControl(args: string[], output: CommandOutput): Promise<0> {
  const { values, positionals } = parseFlags({ args, options: FLAGS, allowPositionals: true });
  if (values.help) {
    output.out(HELP);
    return 0;
  }
  const { request, done } = readCommand(positionals, values);
  const emulator = await EmulatorClient.connect(values.url, values['control-token']);
  await emulator.send(request);
  output.out(`${done}\n`);
  return 0;
}

function readCommand(
  [command, first, second, ...more]: readonly string[],
  { after, company = DEFAULT_COMPANY }: { after?: string; company?: string },
): ControlCommand {
  if (after !== undefined && command !== 'complete') {
    throw new CommandLineError(`--after is only for the command "complete", not for "${command}"`);
  }
  if (more.length === 0 && first !== undefined) {
    if (command === 'fault' && second !== undefined) return faultCommand(company, first, second);
    if (second === undefined) {
      if (command === 'webhooks') return webhooksCommand(company, first);
      if (command === 'complete') return completeCommand(first, after);
      if (command === 'decline') {
        return { request: transactionRequest(first, 'fail'), done: `declined     ${first}` };
      }
    }
  }
  throw new CommandLineError(
    `${command} takes ${{ webhooks: '"on" or "off"', fault: 'a name, and JSON or "off"' }[command ?? ''] ?? 'one transaction id'}`,
  );
}

function webhooksCommand(company: string, state: string): ControlCommand {
  if (state !== 'on' && state !== 'off') {
    throw new CommandLineError(`webhooks takes "on" or "off", not "${state}"`);
  }
  const request = faultRequest(company, 'delivery.off', state === 'off' ? true : undefined);
  return { request, done: `webhooks     ${state}` };
}

function completeCommand(id: string, after: string | undefined): ControlCommand {
  if (after === undefined) {
    return { request: transactionRequest(id, 'complete'), done: `completed    ${id}` };
  }
  const delayMs = parseDuration(after);
  if (delayMs === undefined) {
    throw new CommandLineError(`--after takes a time such as 30s, 10m or 24h, not "${after}"`);
  }
  const request = transactionRequest(id, 'complete-later', { delayMs });
  return { request, done: `completes    ${id} in ${after}` };
}

function faultCommand(company: string, name: string, value: string): ControlCommand {
  const fault = value === 'off' ? undefined : json('fault', value, '{"next":2}');
  return { request: faultRequest(company, name, fault), done: `fault        ${name} ${value}` };
}

function faultRequest(company: string, name: string, value: unknown): ControlRequest {
  const [target = '', fault, ...more] = name.split('.').map(encodeURIComponent);
  if (fault === undefined || more.length > 0) {
    throw new CommandLineError(`fault takes a name such as api.notFound, not "${name}"`);
  }
  const control = `companies/${encodeURIComponent(company)}/faults/${target}/${fault}`;
  return { method: value === undefined ? 'DELETE' : 'PUT', control, input: value };
}

function transactionRequest(id: string, action: string, input?: object): ControlRequest {
  return { method: 'POST', control: `transactions/${encodeURIComponent(id)}/${action}`, input };
}
