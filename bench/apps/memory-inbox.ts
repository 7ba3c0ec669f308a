// An application with the memory inbox and one handler, which receives distinct events. The events arrive without HTTP,
// because HTTP would take minutes and does not affect the memory in use.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  OnPaymentEvent,
  PaymentInbox,
  PaymentsModule,
  VerifiedEvent,
  memoryInbox,
} from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { payment } from '../load/webhook-requests.ts';
import { serveCommands } from '../../test/support/processes/command-process.ts';
import { provider } from './nest-application.ts';
import { COMPANY } from './payments-options.ts';

/** Memory in use after a garbage collection, in megabytes. */
export interface Footprint {
  readonly heapMb: number;
  readonly bodiesMb: number;
}

class App {}
Module({
  imports: [PaymentsModule.forRoot({ ...COMPANY, inbox: memoryInbox() })],
  providers: [provider(() => {}, OnPaymentEvent('*', { name: 'nothing' }) as MethodDecorator)],
})(App);
const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
const inbox = app.get(PaymentInbox);

serveCommands(null, {
  /** Creates `count` events, and resolves with the milliseconds until all events are handled. */
  async timed(count: number): Promise<number> {
    const deliveries = Array.from({ length: count }, verified);
    const start = performance.now();
    const remaining = deliveries.values();
    const sender = async (): Promise<void> => {
      for (const delivery of remaining) {
        await inbox.receive(delivery);
        // Each request of a server arrives in its own turn of the event loop.
        await nextTurn();
      }
    };
    await Promise.all(Array.from({ length: 64 }, sender));
    return performance.now() - start;
  },
  /** Receives `count` events, and resolves with the memory that the application then uses. */
  async through(count: number): Promise<Footprint> {
    let left = count;
    const sender = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        await inbox.receive(verified());
        // Node clears weak references only between turns of the event loop, as it does between requests.
        if (left % 16 === 0) await nextTurn();
      }
    };
    await Promise.all(Array.from({ length: 64 }, sender));
    await nextTurn();
    // Collect garbage twice, because after the first collection finalizers may still reference unreachable objects.
    globalThis.gc!();
    globalThis.gc!();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return { heapMb: heapUsed / 1e6, bodiesMb: arrayBuffers / 1e6 };
  },
  end: () => app.close(),
});

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function verified(): VerifiedEvent {
  const event = payment(0) as PaymentEvent;
  return new VerifiedEvent('default', event, Buffer.from(JSON.stringify(event)), performance.now());
}
