import { configure } from '@codegenie/serverless-express';
import { NestFactory } from '@nestjs/core';
import type { Context } from 'aws-lambda';
import { PaymentInbox } from 'nestjs-payments';
import { AppModule } from './app.module.js';

// Once per process, not per request.
export const app = await NestFactory.create(AppModule);
await app.init();
const server = configure({ app: app.getHttpAdapter().getInstance() });
const inbox = app.get(PaymentInbox);

export async function handler(event: unknown, context: Context): Promise<unknown> {
  const response = await server(event, context, () => {});
  await inbox.runDue({ forMs: 5000 });
  return response;
}

/** Started by a schedule every minute. */
export async function everyMinute(): Promise<void> {
  await inbox.runDue({ forMs: 50_000 });
  await inbox.prune();
}
