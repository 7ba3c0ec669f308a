import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../../support/time/waiting.js';
import { freePort } from '../../support/processes/free-port.js';
import { RunningProcess } from '../../support/processes/running-process.ts';
import { GENERATED_FILES } from '../../support/docs/page-context.js';
import { ReadmeProgram } from '../../support/docs/readme-program.js';

const ROOT = resolve(import.meta.dirname, '../../..');

describe('README.md', () => {
  it('README.md links to every page of docs', () => {
    const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');
    const pages = globSync('docs/*.md', { cwd: ROOT });
    expect(pages.length).toBeGreaterThan(20);
    expect(pages.filter((page) => !readme.includes(`](${page})`))).toEqual([]);
  });
});

describe('The quick start', () => {
  let program: ReadmeProgram;

  beforeAll(() => {
    program = new ReadmeProgram('docs/getting-started.md', GENERATED_FILES);
  });
  afterAll(() => program.remove());

  it('docs/getting-started.md shows code that compiles with strict type checks', () => {
    expect(program.files.slice(0, 3)).toEqual([
      'src/orders.ts',
      'src/app.module.ts',
      'src/main.fastify.ts',
    ]);
    expect(program.complaints).toEqual([]);
  });

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
