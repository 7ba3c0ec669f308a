import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator, signDelivery } from 'payments-emulator';
import { json, post } from '../../support/emulator/api-client.js';
import { commandInProcess } from '../../support/emulator/emulator-in-process.js';
import { emulatorCommand } from '../../support/emulator/emulator-process.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const payment = { amount: 1500, externalReference: 'order-77' };
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;

useEmulator((started) => ({ receiver, emulator } = started));

/** Runs a command of the running emulator. */
const run = (...args: string[]) => commandInProcess(...args, '--url', emulator.baseUrl);

describe('payments-emulator webhooks, complete, decline and fault', () => {
  it('payments-emulator webhooks switches an outage of deliveries on and off, also for another company', async () => {
    emulator.createCompany({ companyId: 'other' });
    expect(await run('webhooks', 'off')).toEqual({ code: 0, out: 'webhooks     off\n', err: '' });
    expect(emulator.faults()).toEqual({ delivery: { off: true } });
    await run('webhooks', 'off', '--company', 'other');
    expect((await run('webhooks', 'on')).code).toBe(0);
    expect([emulator.faults(), emulator.faults('other')]).toEqual([
      {},
      { delivery: { off: true } },
    ]);
  });

  it('payments-emulator complete and decline end a transaction, and fail for a transaction that has ended', async () => {
    const { transactionId: paid } = emulator.createStkPush(payment);
    const { transactionId: declined } = emulator.createStkPush(payment);
    expect(await run('complete', paid)).toMatchObject({ code: 0, out: `completed    ${paid}\n` });
    expect(await run('decline', declined)).toMatchObject({
      code: 0,
      out: `declined     ${declined}\n`,
    });
    expect(emulator.transactions().map(({ status }) => status)).toEqual(['complete', 'failed']);
    expect(await run('decline', paid)).toEqual({
      code: 1,
      out: '',
      err: `payments-emulator: transaction ${paid} is already complete\n`,
    });
  });

  it('payments-emulator complete --after completes a transaction later', async () => {
    const { transactionId, createdAt } = emulator.createStkPush(payment);
    const { code, out } = await run('complete', transactionId, '--after', '24h');
    expect({ code, out }).toEqual({ code: 0, out: `completes    ${transactionId} in 24h\n` });
    const { status, completesAt = '' } = emulator.transaction(transactionId);
    expect(status).toBe('pending');
    expect(Date.parse(completesAt) - Date.parse(createdAt)).toBeGreaterThanOrEqual(86_400_000);
  });

  it('payments-emulator fault sets and removes one fault', async () => {
    expect((await run('fault', 'api.notFound', '{"forMs":60000}')).code).toBe(0);
    expect((await run('fault', 'api.otherStatus', '{"next":2}')).code).toBe(0);
    expect(emulator.faults()).toEqual({
      api: { notFound: { forMs: 60_000 }, otherStatus: { next: 2 } },
    });
    expect(await run('fault', 'api.notFound', 'off')).toMatchObject({
      code: 0,
      out: 'fault        api.notFound off\n',
    });
    expect(emulator.faults()).toEqual({ api: { otherStatus: { next: 2 } } });
    expect(await run('fault', 'api.none', '{}')).toMatchObject({
      code: 1,
      err: expect.stringContaining('api.none is unknown; known are slow'),
    });
  });

  it.each([
    [['webhooks'], 'webhooks takes "on" or "off"'],
    [['webhooks', 'maybe'], 'webhooks takes "on" or "off", not "maybe"'],
    [['complete'], 'complete takes one transaction id'],
    [['decline', 'a', 'b'], 'decline takes one transaction id'],
    [
      ['decline', 'a', '--after', '1s'],
      '--after is only for the command "complete", not for "decline"',
    ],
    [['complete', 'a', '--after', 'soon'], '--after takes a time such as 30s, 10m or 24h'],
    [['fault', 'api.slow'], 'fault takes a name, and JSON or "off"'],
    [['fault', 'slow', '{}'], 'fault takes a name such as api.notFound, not "slow"'],
    [['fault', 'api.slow', 'on'], 'fault takes JSON'],
    [['webhooks', 'off', '--nope'], "Unknown option '--nope'"],
  ])('payments-emulator %j exits with 2 and explains the mistake', async (args, message) => {
    const { code, out, err } = await run(...args);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain(message);
    expect(err).toContain(`payments-emulator ${args[0]} --help lists the flags.`);
    expect(emulator.faults()).toEqual({});
  });

  it.each(['webhooks', 'complete', 'decline', 'fault'])(
    'payments-emulator %s --help lists the commands and exits with 0',
    async (command) => {
      const { code, out } = await run(command, '--help');
      expect(code).toBe(0);
      expect(out).toContain(`payments-emulator ${command}`);
    },
  );
});

const trigger = (...args: string[]) => commandInProcess('trigger', ...args);
const triggerHere = (...args: string[]) => trigger(...args, '--url', emulator.baseUrl);

describe('payments-emulator trigger', () => {
  it('AP-16 trigger completes a payment of a running emulator and delivers its signed event', async () => {
    const flags = ['--amount', '350', '--reference', 'order-1'];
    const command = ['trigger', 'transaction.completed', ...flags, '--url', emulator.baseUrl];
    const { code, out, err } = await emulatorCommand(...command);
    const { event, body, headers } = receiver.first;
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(event).toMatchObject({
      eventType: 'transaction.completed',
      data: { status: 'complete', amount: 350, externalReference: 'order-1' },
    });
    const signature = signDelivery(body, emulator.company.webhookSecret);
    expect(headers['x-webhook-signature']).toBe(signature);
    expect(out).toMatch(
      new RegExp(
        `^transaction  ${String(event.data['transactionId'])} \\(350, order-1\\)\n` +
          `event        ${event.id} \\(transaction\\.completed\\)\n` +
          `delivery     delivered: ${receiver.url} responded with 200 in \\d+ ms\n$`,
      ),
    );
  });

  it('AP-16 trigger uses the default address of the emulator without --url', async () => {
    const started = await commandInProcess('--webhook-url', receiver.url);
    // The test checks nothing if another program uses the default port.
    if (started.emulator === undefined) return expect(started.err).toContain('is in use');
    expect(await trigger('transaction.completed')).toMatchObject({ code: 0, err: '' });
    return expect(receiver.first.event.data).toMatchObject({ amount: 100 });
  });

  it('trigger completes the given transaction', async () => {
    const { transactionId } = emulator.createStkPush({ amount: 7, externalReference: 'o-7' });
    const args = ['transaction.completed', '--transaction', transactionId];
    expect(await triggerHere(...args)).toMatchObject({ code: 0 });
    expect(receiver.first.event.data).toMatchObject({ transactionId, amount: 7 });
    expect(await triggerHere(...args)).toEqual({
      code: 1,
      out: '',
      err: `payments-emulator: transaction ${transactionId} is already complete\n`,
    });
  });

  it('trigger sends an event whose type is not transaction.completed, with the given data, to another company', async () => {
    emulator.createCompany({ companyId: 'umbrella', webhookUrl: `${receiver.url}/umbrella` });
    const flags = ['--data', '{"n":1}', '--company', 'umbrella'];
    expect(await triggerHere('refund.created', ...flags)).toMatchObject({ code: 0 });
    expect(receiver.first).toMatchObject({
      path: '/webhooks/payments/umbrella',
      event: { eventType: 'refund.created', data: { n: 1 } },
    });
  });

  it.each([
    [401, 'failed: {url} responded with 401 in', 'before its signature was checked'],
    [404, 'failed: {url} responded with 404 in', 'has no webhook at this path'],
    [307, 'failed: {url} responded with 307 in', 'redirects are not followed'],
    [503, 'failed: {url} responded with 503 in', 'see the log of the application for the reason'],
  ])('trigger explains a response with status %d', async (status, outcome, advice) => {
    receiver.respondWith(status);
    const { code, out, err } = await triggerHere('transaction.completed');
    expect(code).toBe(1);
    expect(out).toContain(`delivery     ${outcome.replace('{url}', receiver.url)}`);
    expect(err).toContain(advice);
  });

  it.each([
    ['company_unknown', 'has no company with the id at the end of the webhook URL'],
    ['signature_missing', 'X-Webhook-Signature did not arrive'],
    ['signature_mismatch', '--seed keeps them between starts'],
    ['request_rejected', 'before its signature was checked'],
  ])('trigger explains a response with status 401 and the code %s', async (code, advice) => {
    receiver.respond = (_, response) => {
      response.statusCode = 401;
      response.end(JSON.stringify({ statusCode: 401, code, message: 'Not accepted.' }));
    };
    const { err } = await triggerHere('transaction.completed');
    expect(err).toContain(advice);
    expect(err.includes('secret of this emulator')).toBe(code === 'signature_mismatch');
  });

  it('trigger explains a delivery that was not sent, got no response, or was changed by a fault', async () => {
    emulator.setFaults({ delivery: { tamperSignature: { next: 1 } } });
    receiver.respondWith(401);
    expect((await triggerHere('a.b')).err).toContain(
      'a fault of the emulator changed this delivery',
    );
    emulator.setWebhook({ url: 'http://127.0.0.1:1/w' });
    expect((await triggerHere('a.b')).err).toContain('check that the application runs');
    emulator.setWebhook({ url: null });
    const { code, out, err } = await triggerHere('a.b');
    expect(code).toBe(1);
    expect(out).toContain('delivery     skipped: the company has no webhook URL\n');
    expect(err).toContain('start the emulator with --webhook-url');
  });

  it('trigger explains how to start an emulator if none is running', async () => {
    await using gone = await PaymentsEmulator.start();
    await gone.close();
    const { code, out, err } = await trigger('a.b', '--url', gone.baseUrl);
    expect({ code, out }).toEqual({ code: 1, out: '' });
    expect(err).toBe(
      `payments-emulator: no emulator responds at ${gone.baseUrl} (ECONNREFUSED). Start it: npx payments-emulator --webhook-url http://127.0.0.1:3000/webhooks/payments. If the emulator listens at another address, pass this address with --url\n`,
    );
  });

  it('trigger rejects a server that is not an emulator', async () => {
    const url = new URL(receiver.url).origin;
    const { code, err } = await trigger('a.b', '--url', url);
    expect(code).toBe(1);
    expect(err).toContain(`${url} responded with 200, but is not a payments-emulator`);
  });

  it.each([
    [[], 2, 'trigger takes one event type'],
    [['a.b', '--amount', '3,5'], 2, '--amount takes a number such as 350 or 12.5, not "3,5"'],
    [['a.b', '--data', '{'], 2, '--data takes JSON'],
    [['a.b', '--nope'], 2, "Unknown option '--nope'"],
    [['a.b', '--url', 'localhost:4010'], 1, '--url takes an address such as'],
    [['a.b', '--amount', '3'], 1, 'amount is for transaction.completed only'],
    [['transaction.completed', '--amount', '0'], 1, 'amount must be a number above 0'],
    [['transaction.completed', '--data', '{}'], 1, 'data is not allowed for transaction.completed'],
    [['a.b', '--reference', 'x'], 1, '--reference is for transaction.completed only'],
    [['a.b', '--company', 'nobody'], 1, 'there is no company nobody'],
  ])('trigger rejects %j with exit code %d and one error message', async (args, code, message) => {
    const withUrl = args.includes('--url') ? args : [...args, '--url', emulator.baseUrl];
    const refused = await trigger(...withUrl);
    expect(refused).toMatchObject({ code, out: '' });
    expect(refused.err).toContain(`payments-emulator: ${message}`);
    expect(refused.err.includes('payments-emulator trigger --help lists the flags.')).toBe(
      code === 2,
    );
  });
});

describe('emulator.trigger', () => {
  it('trigger() resolves with the transaction, the event and the delivery', async () => {
    const { transaction, event, delivery } = await emulator.trigger({
      eventType: 'transaction.completed',
      amount: 12.5,
      externalReference: 'order-2',
      metadata: { cart: 9 },
    });
    expect(transaction).toMatchObject({ status: 'complete', externalReference: 'order-2' });
    expect(event).toMatchObject({ metadata: { cart: 9 }, data: { amount: 12.5 } });
    expect(delivery).toMatchObject({ eventId: event.id, state: 'delivered' });
    expect(receiver.first.event).toEqual(event);
  });

  it('trigger() generates a different reference each time', async () => {
    const references = new Set<unknown>();
    for (let time = 0; time < 3; time++) {
      const { transaction } = await emulator.trigger({ eventType: 'transaction.completed' });
      references.add(transaction?.externalReference);
    }
    expect([...references]).toEqual(Array(3).fill(expect.stringMatching(/^order-[0-9a-f]{8}$/)));
    expect(references.size).toBe(3);
  });

  it('trigger() is available as a control: POST /emulator/trigger', async () => {
    const url = `${emulator.productionBaseUrl}/emulator/trigger`;
    const response = await json(post(url, { eventType: 'transaction.completed', amount: 5 }));
    expect(response).toMatchObject({
      transaction: { environment: 'production', amount: 5 },
      delivery: { state: 'delivered' },
    });
  });

  it('trigger() rejects an amount if the id of a transaction is given', async () => {
    const wrong = { eventType: 'transaction.completed', transactionId: 'x', amount: 5 };
    await expect(emulator.trigger(wrong)).rejects.toThrow(
      'amount is not allowed with transactionId',
    );
  });
});
