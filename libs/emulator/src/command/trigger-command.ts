import { messageOf } from '../emulator-errors.js';
import type { TriggeredEvent } from '../trigger/trigger-event.js';
import type { TriggerInput } from '../trigger/trigger-input.js';
import { CommandLineError, DEFAULT_URL, json, parseFlags, RUNNING_FLAGS } from './command-flags.js';
import type { CommandOutput } from './command-output.js';
import { describeOutcome } from './delivery-outcome.js';
import { EmulatorClient } from './emulator-client.js';

const HELP = `Sends an event from a running emulator and waits for its delivery.

Usage: payments-emulator trigger EVENT-TYPE [flags]

transaction.completed creates a checkout invoice and completes it:
  --amount NUMBER      default 100
  --reference TEXT     the application's own reference (default: a generated one)
  --transaction ID     completes this open transaction instead

All other types are sent directly:
  --data JSON          the event's data (default {})

  --company ID         default: the company that the emulator started with
  --url URL            the emulator's address (default ${DEFAULT_URL})
  --control-token TOKEN
                       the token that the emulator printed; needed if other machines can reach the emulator
  -h, --help           prints this help

Exit codes: 0 delivered, 1 not delivered, 2 invalid flags.
`;

const FLAGS = {
  ...RUNNING_FLAGS,
  amount: { type: 'string' },
  reference: { type: 'string' },
  transaction: { type: 'string' },
  data: { type: 'string' },
} as const;

/** The flag that sets a field of {@link TriggerInput}, by the name of the field. */
const FLAG_OF: Readonly<Record<string, string>> = {
  externalReference: '--reference',
  transactionId: '--transaction',
  companyId: '--company',
  eventType: 'the event type',
};

/**
 * Runs `payments-emulator trigger …` and returns its exit code.
 *
 * @throws CommandLineError for invalid flags, Error if no emulator responds or if the emulator rejects the event
 */
export async function runTrigger(args: string[], output: CommandOutput): Promise<0 | 1> {
  const { url, controlToken, input } = readTrigger(args);
  if (input === undefined) {
    output.out(HELP);
    return 0;
  }
  const emulator = await EmulatorClient.connect(url, controlToken);
  const { transaction, event, delivery } = await send(emulator, input);
  const outcome = describeOutcome(delivery);
  if (transaction) {
    const { transactionId, amount, externalReference } = transaction;
    output.out(`transaction  ${transactionId} (${amount}, ${externalReference})\n`);
  }
  output.out(`event        ${event.id} (${event.eventType})\ndelivery     ${outcome.text}\n`);
  if (outcome.advice !== undefined) output.err(`payments-emulator: ${outcome.advice}\n`);
  return delivery.state === 'delivered' ? 0 : 1;
}

async function send(emulator: EmulatorClient, input: TriggerInput): Promise<TriggeredEvent> {
  try {
    return await emulator.send<TriggeredEvent>({ method: 'POST', control: 'trigger', input });
  } catch (error) {
    // The emulator's message contains field names. Users of the command know these fields as flags.
    const name = (field: string): string => FLAG_OF[field] ?? field;
    throw new Error(messageOf(error).replace(/\b[a-z]+[A-Z]\w+\b/g, name), { cause: error });
  }
}

function readTrigger(args: string[]): {
  url: string;
  controlToken: string | undefined;
  input: TriggerInput | undefined;
} {
  const { values, positionals } = parseFlags({ args, options: FLAGS, allowPositionals: true });
  const { url, reference, transaction, company, 'control-token': controlToken } = values;
  if (values.help) return { url, controlToken, input: undefined };
  const [eventType, ...more] = positionals;
  if (eventType === undefined || more.length > 0) {
    throw new CommandLineError(
      'trigger takes one event type, for example: payments-emulator trigger transaction.completed',
    );
  }
  const data = json('--data', values.data, '{"orderId":1}') as TriggerInput['data'];
  return {
    url,
    controlToken,
    input: {
      eventType,
      ...(values.amount !== undefined && { amount: numberOf(values.amount) }),
      ...(reference !== undefined && { externalReference: reference }),
      ...(transaction !== undefined && { transactionId: transaction }),
      ...(company !== undefined && { companyId: company }),
      ...(data !== undefined && { data }),
    },
  };
}

function numberOf(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new CommandLineError(`--amount takes a number such as 350 or 12.5, not "${text}"`);
}
