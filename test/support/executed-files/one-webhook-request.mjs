// Receives one webhook request and waits until its delivery is settled: `node one-webhook-request.mjs <setup>`, with
// `record-files.mjs` preloaded. The setup is JSON: { store, where }.
import 'reflect-metadata';
import { renameSync, writeFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { memoryInbox, OnPaymentEvent, PaymentInbox, PaymentsModule } from 'nestjs-payments';
import { paymentEvent, signedRequest } from 'nestjs-payments/testing';

const { store, where } = JSON.parse(process.argv[2]);
const trace = process.env['WEBHOOK_TRACE'];
const SECRET = 'whsec_trace';

async function inbox() {
  if (store === 'memory') return memoryInbox();
  if (store === 'sqlite') {
    const { sqliteInbox } = await import('nestjs-payments/sqlite');
    const threadPath = fileURLToPath(new URL('recorded-thread.mjs', import.meta.url));
    return sqliteInbox({ file: where, threadPath });
  }
  const { postgresInbox } = await import('nestjs-payments/postgres');
  return postgresInbox({ connectionString: where });
}

class Orders {
  async markPaid() {}
}
const method = Object.getOwnPropertyDescriptor(Orders.prototype, 'markPaid');
OnPaymentEvent('transaction.completed')(Orders.prototype, 'markPaid', method);

class AppModule {}
Module({
  imports: [
    PaymentsModule.forRoot({
      baseUrl: 'http://127.0.0.1:9',
      clientId: 'client',
      clientSecret: 'secret',
      webhookSecret: SECRET,
      inbox: await inbox(),
      // No heartbeat and no maintenance runs during the recording.
      worker: { leaseMs: 3_600_000 },
    }),
  ],
  providers: [Orders],
})(AppModule);

const app = await NestFactory.create(AppModule, new ExpressAdapter(), {
  logger: ['error', 'warn'],
});
await app.listen(0, '127.0.0.1');
const payments = app.get(PaymentInbox);

/** Creates a webhook request. The returned function sends it, and resolves with the event's id when nothing runs. */
async function webhookRequest() {
  const event = paymentEvent('transaction.completed');
  const { path, headers, body } = signedRequest(JSON.stringify(event), {
    secret: SECRET,
    path: '/webhooks/payments',
  });
  const url = `${await app.getUrl()}${path}`;
  return async () => {
    const response = await fetch(url, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
    await setTimeout(500);
    return event.id;
  };
}

// The first requests load the catalog, prepare statements and end the claims of the start.
for (let warmUp = 0; warmUp < 2; warmUp += 1) await (await webhookRequest())();
const send = await webhookRequest();
writeFileSync(trace, '');
const id = await send();
renameSync(trace, `${trace}.done`);
const { deliveries } = await payments.get(id);
if (deliveries[0]?.state !== 'done') throw new Error(`the delivery is ${deliveries[0]?.state}`);
await app.close();
