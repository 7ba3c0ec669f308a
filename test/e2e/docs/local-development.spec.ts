import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { EMULATOR, FREE_PORTS, runEmulator } from '../../support/emulator/emulator-process.js';
import { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { eventually } from '../../support/time/waiting.js';

// Each command is a process of its own, and a busy machine starts a process in seconds.
jest.setTimeout(300_000);

const page = await readFile(new URL('../../../docs/local-development.md', import.meta.url), 'utf8');

/** The commands, in the order of the guide. */
const commands = [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
  block.trim().split('\n'),
);

/** Runs a command of the guide against the emulator and the receiver of the test. */
async function runIn(folder: string, command: string, url: string, receiver: WebhookReceiver) {
  const line = command
    .replaceAll('http://127.0.0.1:4010', url)
    .replaceAll('http://127.0.0.1:3000/webhooks/payments', receiver.url)
    .replace(/^npx payments-emulator .*/, (running) => `${running} --url ${url}`)
    .replace(/^npx payments-emulator/, '"$NODE" "$EMULATOR"')
    .replace(/^curl /, 'curl --fail-with-body ');
  const env = { ...process.env, NODE: process.execPath, EMULATOR };
  const { stdout } = await promisify(execFile)('sh', ['-c', line], { cwd: folder, env });
  return stdout;
}

/** Creates a transaction on the running emulator, as an application would. Returns the id of the transaction. */
async function createTransaction(url: string): Promise<string> {
  const response = await fetch(`${url}/emulator/transactions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"kind":"payout","amount":1,"externalReference":"order-2"}',
  });
  return ((await response.json()) as { transactionId: string }).transactionId;
}

describe('docs/local-development.md', () => {
  let folder: string;
  let receiver: WebhookReceiver;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'local-development-'));
    receiver = await WebhookReceiver.start();
  });
  afterAll(async () => {
    await receiver[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  it('AP-16 docs/local-development.md shows commands that work', async () => {
    const [start = '', ...others] = commands;
    const startAs = async (command: string): Promise<string> => {
      const flags = command
        .replace('http://127.0.0.1:3000/webhooks/payments', receiver.url)
        .replace('--save-env .env', `--save-env ${join(folder, '.env')}`)
        .replace('npx payments-emulator ', '')
        .split(' ');
      const emulator = runEmulator(...flags, ...FREE_PORTS);
      const [, address = ''] = await emulator.prints(/^export PAYMENTS_BASE_URL=(.+)$/m);
      return address;
    };
    let url = await startAs(start);
    expect(existsSync(join(folder, '.env'))).toBe(true);

    const [later, declined] = [await createTransaction(url), await createTransaction(url)];
    const outputs = new Map<string, string>();
    await writeFile(join(folder, 'body.json'), '{"eventType": "from.file"}');
    for (const command of others) {
      if (command.startsWith('npx payments-emulator --')) {
        url = await startAs(command);
        continue;
      }
      // The guide repeats a delivery that failed before.
      const listed = outputs.get(others.find((other) => other.includes('state=failed')) ?? '');
      const [failed] = JSON.parse(listed ?? '[]') as { id: string }[];
      const line = command
        .replace('$DELIVERY_ID', failed?.id ?? '')
        .replace('$TRANSACTION_ID', later)
        .replace('$OTHER_TRANSACTION_ID', declined);
      if (command.includes('state=failed')) {
        receiver.respondWith(500, 200);
        await fetch(`${url}/emulator/trigger`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: '{"eventType":"shop.closed"}',
        });
        await eventually(async () => {
          const response = await fetch(`${url}/emulator/deliveries?state=failed`);
          expect(await response.json()).toHaveLength(1);
        });
      }
      outputs.set(command, await runIn(folder, line, url, receiver));
    }

    expect(receiver.received.map(({ path, event }) => [path, event.eventType])).toEqual([
      ['/webhooks/payments', 'transaction.completed'],
      ['/webhooks/payments', 'webhook.test'],
      ['/webhooks/payments', 'payout.settled'],
      ['/webhooks/payments', 'shop.closed'],
      ['/webhooks/payments', 'shop.closed'],
      ['/webhooks/payments', 'shop.closed'],
      ['/webhooks/payments', 'from.file'],
      ['/webhooks/payments/umbrella', 'transaction.completed'],
    ]);
    expect(receiver.first.event.data).toMatchObject({ amount: 350, externalReference: 'order-1' });
    const [on, off] = others.filter((command) => command.includes('/faults/delivery/duplicate'));
    expect(outputs.get(on!)).toBe('{"delivery":{"duplicate":{"copies":2}}}');
    expect(outputs.get(off!)).toBe('{}');
    const outage = others.filter((command) => /emulator (webhooks|complete|decline)/.test(command));
    expect(outage.map((command) => outputs.get(command))).toEqual([
      'webhooks     off\n',
      `completes    ${later} in 10m\n`,
      `declined     ${declined}\n`,
      'webhooks     on\n',
    ]);
  });
});
