import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { eventually } from '../support/time/waiting.js';
import { freePort } from '../support/processes/free-port.js';
import { ReadmeProgram } from '../support/docs/readme-program.js';

/** Files that `nest new` generates and that the quick start does not change. */
const GENERATED = {
  'src/app.service.ts': `
    import { Injectable } from '@nestjs/common';
    @Injectable()
    export class AppService {}`,
  'src/app.controller.ts': `
    import { Controller } from '@nestjs/common';
    @Controller()
    export class AppController {}`,
  'src/main.ts': `
    import { NestFactory } from '@nestjs/core';
    import { AppModule } from './app.module.js';
    const app = await NestFactory.create(AppModule);
    await app.listen(process.env['PORT'] ?? 3000);`,
};

describe('README', () => {
  let program: ReadmeProgram;

  beforeAll(() => {
    program = new ReadmeProgram('README.md', GENERATED);
  }, 60_000);
  afterAll(() => program.remove());

  it('README.md shows code that compiles with strict', () => {
    expect(program.files).toEqual([
      'src/orders.ts',
      'src/app.module.ts',
      'src/main.fastify.ts',
      'options.ts',
    ]);
    expect(program.complaints).toEqual([]);
  });

  it('libs/payments/README.md shows code that compiles with strict', () => {
    const page = new ReadmeProgram('libs/payments/README.md');
    page.remove();
    expect(page.files).toEqual(['app.module.ts']);
    expect(page.complaints).toEqual([]);
  }, 60_000);

  it.each(['main.js', 'main.fastify.js'])(
    'README.md shows a quick start that handles a payment with %s',
    async (main) => {
      const port = await freePort();
      await using emulator = await PaymentsEmulator.start({
        webhookUrl: `http://127.0.0.1:${port}/webhooks/payments`,
      });
      const { clientId, clientSecret, webhookSecret } = emulator.company;
      const shop = spawn(process.execPath, [join(program.folder, 'src', main)], {
        env: {
          ...process.env,
          PORT: String(port),
          NO_COLOR: '1',
          PAYMENTS_BASE_URL: emulator.baseUrl,
          PAYMENTS_CLIENT_ID: clientId,
          PAYMENTS_CLIENT_SECRET: clientSecret,
          PAYMENTS_WEBHOOK_SECRET: webhookSecret,
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const exit = once(shop, 'exit');
      try {
        for await (const line of createInterface(shop.stdout)) {
          if (line.includes('successfully started')) break;
        }
        expect(shop.exitCode).toBeNull();
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
      } finally {
        shop.kill('SIGTERM');
        await exit;
      }
    },
  );
});
