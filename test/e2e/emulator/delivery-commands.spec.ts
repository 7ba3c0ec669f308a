import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { commandInProcess } from '../../support/emulator/emulator-in-process.js';
import { runEmulator } from '../../support/emulator/emulator-process.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import { signatureOf } from '../../support/emulator/webhook-receiver.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { eventually } from '../../support/time/waiting.js';

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started));

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'delivery-commands-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** Runs a command of the running emulator. */
const run = (...args: string[]) => commandInProcess(...args, '--url', emulator.baseUrl);

async function fileWith(content: string): Promise<string> {
  const file = join(folder, 'body.json');
  await writeFile(file, content);
  return file;
}

describe('payments-emulator watch, replay and send', () => {
  it('AP-22 payments-emulator watch prints each new webhook request with status, time and error code, and no earlier request', async () => {
    await emulator.trigger({ eventType: 'from.before' });
    const watching = runEmulator('watch', '--url', emulator.baseUrl);
    await watching.prints(/^Waiting for webhook requests/m);
    const { delivery } = await emulator.trigger({ eventType: 'shop.opened' });
    await watching.prints(
      new RegExp(
        `^\\d\\d:\\d\\d:\\d\\d  ${delivery.id}  shop\\.opened  default  attempt 1  delivered  200  \\d+ ms$`,
        'm',
      ),
    );
    receiver.respond = (_, response) => {
      response.statusCode = 401;
      response.end('{"statusCode":401,"code":"signature_mismatch"}');
    };
    await emulator.trigger({ eventType: 'shop.closed' });
    await watching.prints(/shop\.closed .* failed  401  \d+ ms  signature_mismatch$/m);
    await eventually(() =>
      expect(watching.stderr).toContain('PAYMENTS_WEBHOOK_SECRET probably differs'),
    );
    expect(watching.stdout).not.toContain('from.before');
    expect(watching.stdout.match(/shop\./g)).toHaveLength(2);
  });

  it('AP-22 payments-emulator watch also prints requests whose ids repeat after a reset of the emulator', async () => {
    const watching = runEmulator('watch', '--url', emulator.baseUrl);
    await watching.prints(/^Waiting for webhook requests/m);
    const { delivery: before } = await emulator.trigger({ eventType: 'shop.opened' });
    await watching.prints(/shop\.opened/);
    await emulator.reset();
    const { delivery: after } = await emulator.trigger({ eventType: 'shop.closed' });
    expect(after.id).toBe(before.id);
    await watching.prints(/shop\.closed/);
  });

  it('AP-22 payments-emulator replay sends the same bytes again', async () => {
    receiver.respondWith(500, 200);
    const { delivery } = await emulator.trigger({ eventType: 'shop.opened' });
    const { code, out } = await run('replay', delivery.id);
    expect({ code, out }).toEqual({
      code: 0,
      out: expect.stringMatching(/shop\.opened  default  attempt 2  delivered  200/),
    });
    const [first, second] = receiver.received;
    expect(second!.body.equals(first!.body)).toBe(true);
    expect(await run('replay', 'd-0')).toMatchObject({
      code: 1,
      err: expect.stringContaining('there is no delivery d-0 in the log'),
    });
  });

  it('AP-22 payments-emulator send signs the bytes of a file and sends them unchanged', async () => {
    const text = '{ "eventType":"payout.settled",\n "id": 7, "data": {"amount": 1.50} }\n';
    const file = await fileWith(text);
    expect(await run('send', '--file', file)).toMatchObject({ code: 0 });
    const { body, headers } = receiver.first;
    expect(body.toString()).toBe(text);
    expect(headers['x-webhook-signature']).toBe(signatureOf(body, emulator.company.webhookSecret));
    expect(headers['x-webhook-event']).toBe('payout.settled');
    receiver.respondWith(400);
    expect(await run('send', '--file', file)).toMatchObject({ code: 1 });
  });

  it('payments-emulator send rejects a file that is no event, and sends nothing', async () => {
    for (const text of ['no JSON', '[]', '{"eventType":1}', '{"eventType":"a b"}']) {
      expect(await run('send', '--file', await fileWith(text))).toMatchObject({
        code: 1,
        err: expect.stringContaining('body must be a JSON object with the field "eventType"'),
      });
    }
    expect(await run('send', '--file', join(folder, 'missing.json'))).toMatchObject({
      code: 1,
      err: expect.stringContaining('ENOENT'),
    });
    expect(receiver.received).toEqual([]);
  });

  it.each([
    ['watch', 'd-1'],
    ['replay'],
    ['replay', 'd-1', 'd-2'],
    ['send'],
    ['send', '--file', 'a', 'b'],
    ['watch', '--company', 'acme'],
    ['watch', '--nonsense'],
  ])('payments-emulator rejects the flags of %s %s', async (...args) => {
    const { code, err } = await run(...args);
    expect(code).toBe(2);
    expect(err).toContain(`payments-emulator ${args[0]} --help lists the flags.`);
  });

  it('payments-emulator watch continues if a reset removes a delivery before it is printed', async () => {
    const { delivery } = await emulator.trigger({ eventType: 'shop.opened' });
    let lists = 0;
    // An emulator that lists two deliveries, of which it has only one.
    const server = createServer(({ url = '' }, response) => {
      const gone = { ...delivery, id: 'gone' };
      if (url.includes('search')) lists += 1;
      if (url.endsWith('/gone')) response.statusCode = 404;
      const deliveries = lists > 1 ? [delivery, gone] : [];
      const found = url.endsWith(delivery.id) ? delivery : { deliveries };
      response.end(JSON.stringify({ emulator: 'payments-emulator', ...found }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const watching = runEmulator('watch', '--url', `http://127.0.0.1:${port}`);
    try {
      await watching.prints(/shop\.opened/);
    } finally {
      await watching.kill();
      server.close();
    }
    expect(watching.stdout).not.toContain('gone');
  });

  it('payments-emulator watch names the flags that it does not take', async () => {
    const { err } = await run('watch', '--company', 'acme');
    expect(err).toContain('watch takes no id, no --file and no --company\n');
  });

  it('payments-emulator watch ends if its output is closed', async () => {
    const watching = runEmulator('watch', '--url', emulator.baseUrl);
    await watching.prints(/^Waiting for webhook requests/m);
    watching.closeOutput();
    await emulator.trigger({ eventType: 'shop.opened' });
    expect(await watching.ended).toMatchObject({ code: 0 });
  });

  it('payments-emulator watch ends with an error if no emulator responds', async () => {
    const { code, err } = await commandInProcess('watch', '--url', 'http://127.0.0.1:9');
    expect({ code, err }).toEqual({
      code: 1,
      err: expect.stringContaining('no emulator responds'),
    });
  });
});
