// A process that works on a PostgreSQL or SQLite inbox of nestjs-payments, which is paused until the clock starts.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import { inboxOf } from '../apps/inboxes.ts';
import type { InboxChoice } from '../apps/inboxes.ts';
import { provider } from '../apps/nest.ts';
import { answer, configuration } from '../processes/parent.ts';
import { Tally } from './tally.ts';
import { COMPANY } from '../apps/company.ts';

const { inbox, concurrency } = configuration() as { inbox: InboxChoice; concurrency: number };
const tally = new Tally();
const Handlers = provider(tally.handle, OnPaymentEvent('*', { name: 'book' }) as MethodDecorator);
let app: INestApplicationContext | undefined;

answer(null, {
  async prepare() {
    tally.reset();
    class App {}
    Module({
      imports: [
        PaymentsModule.forRoot({
          ...COMPANY,
          inbox: inboxOf(inbox),
          worker: { concurrency },
        }),
      ],
      providers: [Handlers],
    })(App);
    app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
  },
  // Who fills the inbox resumes it, which wakes every process.
  go() {},
  handled: tally.handled,
  stop: () => app?.close(),
});
