// A worker process of nestjs-payments on a PostgreSQL or SQLite inbox. The inbox is paused before the measurement.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import { provider } from '../apps/nest-application.ts';
import { observersOf } from '../apps/observers.ts';
import type { ObserverChoice } from '../apps/observers.ts';
import { COMPANY, inboxOf } from '../apps/payments-options.ts';
import type { InboxChoice } from '../apps/payments-options.ts';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { HandlerCounter } from './handler-counter.ts';

const {
  inbox,
  concurrency,
  observers: choice,
} = configuration() as { inbox: InboxChoice; concurrency: number; observers?: ObserverChoice };
const observers = observersOf(choice);
const counter = new HandlerCounter();
const Handlers = provider(counter.handle, OnPaymentEvent('*', { name: 'book' }) as MethodDecorator);
let app: INestApplicationContext | undefined;

serveCommands(null, {
  async prepare() {
    counter.reset();
    class App {}
    Module({
      imports: [
        PaymentsModule.forRoot({
          ...COMPANY,
          inbox: inboxOf(inbox),
          worker: { concurrency },
          observers,
        }),
      ],
      providers: [Handlers],
    })(App);
    app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
  },
  // The bench resumes the inbox, which wakes every worker process.
  go() {},
  handled: counter.handled,
  stop: () => app?.close(),
});
