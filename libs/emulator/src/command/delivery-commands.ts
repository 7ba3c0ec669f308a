import { readFile } from 'node:fs/promises';
import { setTimeout } from 'node:timers/promises';
import type { DeliveryAttempt } from '../deliveries/delivery-attempt.js';
import type { DeliveryPage } from '../deliveries/delivery-summary.js';
import { CommandLineError, DEFAULT_URL, parseFlags, RUNNING_FLAGS } from './command-flags.js';
import type { CommandOutput } from './command-output.js';
import { describeDelivery } from './command-output.js';
import { codeOf, describeOutcome } from './delivery-outcome.js';
import { EmulatorClient } from './emulator-client.js';

const HELP = `Shows and sends the webhook requests of a running emulator.

Usage: payments-emulator watch              prints each webhook request with the response of the application,
                                            until you press Ctrl+C
       payments-emulator replay ID          sends a webhook request again; watch prints the ids
       payments-emulator send --file FILE   signs the content of a file and sends it as it is; the file must
                                            contain a JSON object with "eventType"

  --company ID         send only (default: the company that the emulator started with)
  --url URL            the emulator's address (default ${DEFAULT_URL})
  --control-token TOKEN
                       the token that the emulator printed; needed if other machines can reach the emulator
  -h, --help           prints this help

Exit codes: 0 delivered, 1 not delivered or no emulator, 2 invalid flags.
`;

const FLAGS = { ...RUNNING_FLAGS, file: { type: 'string' } } as const;

export const DELIVERY_COMMANDS: readonly string[] = ['watch', 'replay', 'send'];

/** How often `watch` requests the delivery log: every 500 milliseconds. */
const WATCH_MS = 500;

/**
 * Runs one of the {@link DELIVERY_COMMANDS}, and returns the exit code. `watch` runs until its output is closed or a
 * request to the emulator fails.
 *
 * @throws CommandLineError for invalid flags, Error if no emulator responds or if the emulator rejects the request
 */
export async function runDeliveryCommand(args: string[], output: CommandOutput): Promise<0 | 1> {
  const { values, positionals } = parseFlags({ args, options: FLAGS, allowPositionals: true });
  if (values.help) {
    output.out(HELP);
    return 0;
  }
  const [command, id, ...more] = positionals;
  const { file, company: companyId, url, 'control-token': controlToken } = values;
  const valid =
    more.length === 0 &&
    (id !== undefined) === (command === 'replay') &&
    (file !== undefined) === (command === 'send') &&
    (companyId === undefined || command === 'send');
  if (!valid) {
    const takes = { replay: 'one id', send: '--file and no id' }[command ?? ''] ?? 'no id';
    const others = command === 'send' ? '' : ', no --file and no --company';
    throw new CommandLineError(`${command} takes ${takes}${others}`);
  }
  const body = file === undefined ? undefined : (await readFile(file)).toString('base64');
  const emulator = await EmulatorClient.connect(url, controlToken);
  if (command === 'watch') return watch(emulator, output);
  const delivery = await emulator.send<DeliveryAttempt>(
    id === undefined
      ? { method: 'POST', control: 'deliveries', input: { body, companyId } }
      : { method: 'POST', control: `deliveries/${encodeURIComponent(id)}/redeliver` },
  );
  print(delivery, output);
  return delivery.state === 'delivered' ? 0 : 1;
}

/** Until the output is closed, prints each attempt that ends after the call. */
async function watch(emulator: EmulatorClient, output: CommandOutput): Promise<0> {
  let seen: ReadonlySet<string> | undefined;
  while (!output.closed?.aborted) {
    const { deliveries } = await emulator.send<DeliveryPage>({
      method: 'GET',
      control: 'deliveries/search?limit=200',
    });
    const ended = deliveries.filter(({ state }) => state !== 'waiting' && state !== 'sending');
    if (seen === undefined) output.out('Waiting for webhook requests. Press Ctrl+C to end.\n');
    for (const delivery of seen === undefined ? [] : ended.toReversed()) {
      if (seen?.has(keyOf(delivery))) continue;
      // The list does not contain the responses, which are necessary for the error code and the advice.
      const control = `deliveries/${encodeURIComponent(delivery.id)}`;
      // A reset may have removed the delivery meanwhile. If the emulator has been closed, the next request of the list
      // fails.
      const found = emulator.send<DeliveryAttempt>({ method: 'GET', control });
      const record = await found.catch(() => undefined);
      if (record !== undefined) print(record, output);
    }
    seen = new Set(ended.map(keyOf));
    await setTimeout(WATCH_MS);
  }
  return 0;
}

/**
 * Returns a text that identifies an attempt. After a reset, the emulator may repeat ids, but not the times of creation.
 */
function keyOf({ id, createdAt }: Pick<DeliveryAttempt, 'id' | 'createdAt'>): string {
  return `${id} ${createdAt}`;
}

function print(delivery: DeliveryAttempt, output: CommandOutput): void {
  const time = new Date(delivery.sentAt ?? delivery.createdAt).toTimeString().slice(0, 8);
  const code = codeOf(delivery);
  output.out(`${time}  ${delivery.id}  ${describeDelivery(delivery)}${code ? `  ${code}` : ''}\n`);
  const { advice } = describeOutcome(delivery);
  if (advice !== undefined) output.err(`payments-emulator: ${advice}\n`);
}
