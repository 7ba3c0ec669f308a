// A worker process of nestjs-payments on a PostgreSQL or SQLite inbox. The inbox is paused before the measurement. With an
// engine, it is a gateway or a process of a service, and the inbox of the gateway is paused.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import type { INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { OnPaymentEvent, PaymentsModule } from 'nestjs-payments';
import type { PaymentsModuleOptions } from 'nestjs-payments';
import { createEngineAdapter } from 'test-postgres/engines/create-engine-adapter';
import type { EngineAccess } from 'test-postgres/engines/create-engine-adapter';
import { provider } from '../apps/nest-application.ts';
import { COMPANY, inboxOf } from '../apps/payments-options.ts';
import type { InboxChoice } from '../apps/payments-options.ts';
import { configuration, serveCommands } from '../../test/support/processes/command-process.ts';
import { HandlerCounter } from './handler-counter.ts';

/** The configuration of a worker process. */
export interface PaymentsWorkerConfig {
  readonly inbox: InboxChoice;
  readonly concurrency: number;
  readonly engine?: EngineAccess;
  /** Whether a gateway counts the events that the engine has accepted. */
  readonly counts?: boolean;
}

const { inbox, concurrency, engine, counts = false } = configuration() as PaymentsWorkerConfig;
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
          ...(await engineOptions()),
        }),
      ],
      providers: engine !== undefined && engine.service === undefined ? [] : [Handlers],
    })(App);
    app = await NestFactory.createApplicationContext(App, { logger: ['error'] });
  },
  // The bench resumes the inbox, which wakes every worker process.
  go() {},
  handled: counter.handled,
  stop: () => app?.close(),
});

async function engineOptions(): Promise<Pick<PaymentsModuleOptions, 'relay' | 'source'>> {
  if (engine === undefined) return {};
  const adapter = await createEngineAdapter(engine);
  if (engine.service !== undefined) return { source: adapter };
  if (!counts) return { relay: adapter };
  return {
    relay: {
      open: () => adapter.open!(),
      publish: async (message, options) => {
        await adapter.publish(message, options);
        counter.handle();
      },
      close: () => adapter.close!(),
    },
  };
}
