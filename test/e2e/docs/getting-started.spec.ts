import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../../support/time/waiting.js';
import { freePort } from '../../support/processes/free-port.js';
import { RunningProcess } from '../../support/processes/running-process.ts';
import { GENERATED_FILES } from '../../support/docs/page-context.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

describe('The quick start', () => {
  let program: ReadmeProgram;

  beforeAll(() => {
    program = new ReadmeProgram('docs/getting-started.md', GENERATED_FILES);
  });
  afterAll(() => program.remove());

  it.each(['main.js', 'main.fastify.js'])(
    'docs/getting-started.md shows a quick start that handles a payment with %s',
    async (main) => {
      const port = await freePort();
      await using emulator = await PaymentsEmulator.start({
        webhookUrl: `http://127.0.0.1:${port}/webhooks/payments`,
      });
      const { clientId, clientSecret, webhookSecret } = emulator.company;
      await using shop = new RunningProcess(process.execPath, [join(program.folder, 'src', main)], {
        env: {
          ...process.env,
          PORT: String(port),
          PAYMENTS_BASE_URL: emulator.baseUrl,
          PAYMENTS_CLIENT_ID: clientId,
          PAYMENTS_CLIENT_SECRET: clientSecret,
          PAYMENTS_WEBHOOK_SECRET: webhookSecret,
        },
      });
      await shop.prints(/successfully started/);
      const { transactionId } = emulator.createCheckoutInvoice({
        amount: 1500,
        externalReference: 'order-77',
      });
      // Nest logs "started" shortly before the application listens.
      await eventually(() => fetch(`http://127.0.0.1:${port}/`));
      // With the memory inbox, status 200 means that the handler has called the API and succeeded.
      emulator.complete(transactionId);
      await emulator.idle();
      expect(emulator.deliveries().map(({ response }) => response?.status)).toEqual([200]);
    },
  );
});
