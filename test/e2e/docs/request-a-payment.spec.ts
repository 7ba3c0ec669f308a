import { join, relative, resolve } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { GENERATED_FILES } from '../../support/docs/page-context.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';
import { freePort } from '../../support/processes/free-port.js';
import { startProgram } from '../../support/processes/start-program.js';
import type { RunningProcess } from '../../support/processes/running-process.js';
import { eventually } from '../../support/time/waiting.js';

const root = resolve(import.meta.dirname, '../../..');

describe('docs/request-a-payment.md', () => {
  let program: ReadmeProgram;
  let emulator: PaymentsEmulator;
  let application: RunningProcess;
  let url: string;

  beforeAll(async () => {
    program = new ReadmeProgram('docs/request-a-payment.md', {
      'src/main.ts': GENERATED_FILES['src/main.ts'],
    });
    expect(program.complaints).toEqual([]);
    const port = await freePort();
    url = `http://127.0.0.1:${port}`;
    emulator = await PaymentsEmulator.start({ port: 0, webhookUrl: `${url}/webhooks/payments` });
    const { clientId, clientSecret, webhookSecret } = emulator.company;
    application = startProgram(join(relative(root, program.folder), 'src/main.js'), {
      PORT: String(port),
      PAYMENTS_BASE_URL: emulator.baseUrl,
      PAYMENTS_CLIENT_ID: clientId,
      PAYMENTS_CLIENT_SECRET: clientSecret,
      PAYMENTS_WEBHOOK_SECRET: webhookSecret,
    });
    await application.prints(/successfully started/);
    // Nest logs this line shortly before the application listens.
    await eventually(() => fetch(url));
  });
  beforeEach(() => emulator.setFaults({}));
  afterAll(async () => {
    await application?.[Symbol.asyncDispose]();
    await emulator?.close();
    program.remove();
  });

  async function requestPayment(
    reference: string,
  ): Promise<{ state: string; checkoutUrl?: string }> {
    const response = await fetch(`${url}/orders/${reference}/payment`, { method: 'POST' });
    return (await response.json()) as { state: string; checkoutUrl?: string };
  }

  function transactionsOf(reference: string) {
    return emulator
      .transactions()
      .filter(({ externalReference }) => externalReference === reference);
  }

  it('docs/request-a-payment.md shows an application that requests a payment once and marks the order as paid', async () => {
    const order = await requestPayment('order-2');
    expect(order).toMatchObject({ state: 'requested', checkoutUrl: expect.stringContaining('/') });
    expect(await requestPayment('order-2')).toEqual(order);
    const [transaction, ...others] = transactionsOf('order-2');
    expect(others).toEqual([]);
    emulator.complete(transaction!.transactionId);
    await application.prints(/Order order-2 is paid/);
    expect(await requestPayment('order-2')).toMatchObject({ state: 'paid' });
  });

  it('docs/request-a-payment.md shows an application that handles the event of a call with an unknown outcome and does not repeat the call', async () => {
    emulator.setFaults({ api: { reset: { when: 'after', next: 1 } } });
    expect(await requestPayment('order-3')).toMatchObject({ state: 'unknown' });
    expect(await requestPayment('order-3')).toMatchObject({ state: 'unknown' });
    const [transaction, ...others] = transactionsOf('order-3');
    expect(others).toEqual([]);
    emulator.complete(transaction!.transactionId);
    await application.prints(/Order order-3 is paid/);
  });

  it('docs/request-a-payment.md shows an application that does not repeat a call that the service rejected with 429', async () => {
    emulator.setFaults({ api: { rateLimit: { next: 1 } } });
    expect(await requestPayment('order-5')).toMatchObject({ state: 'unknown' });
    expect(await requestPayment('order-5')).toMatchObject({ state: 'unknown' });
    expect(transactionsOf('order-5')).toEqual([]);
  });

  it('docs/request-a-payment.md shows an application that repeats a call that had no effect', async () => {
    // The module repeats the call once with a new token.
    emulator.setFaults({ api: { unauthorized: { next: 2 } } });
    expect(await requestPayment('order-4')).toMatchObject({ state: 'failed' });
    expect(await requestPayment('order-4')).toMatchObject({ state: 'requested' });
  });
});
