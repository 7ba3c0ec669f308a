// Distinct events through the memory inbox of an application, one handler each; without HTTP, which would take
// minutes and hold nothing.
import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  OnPaymentEvent,
  PaymentInbox,
  PaymentsModule,
  VerifiedDelivery,
  memoryInbox,
} from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import { payment } from '../load/deliveries.ts';
import { answer } from '../processes/parent.ts';
import { provider } from './nest.ts';
import { COMPANY } from './company.ts';

export interface Footprint {
  readonly heapMb: number;
  readonly bodiesMb: number;
  readonly peakRssMb: number;
}

class App {}
Module({
  imports: [
    PaymentsModule.forRoot({
      ...COMPANY,
      inbox: memoryInbox(),
    }),
  ],
  providers: [provider(() => {}, OnPaymentEvent('*', { name: 'nothing' }) as MethodDecorator)],
})(App);
const app = await NestFactory.createApplicationContext(App, { logger: ['error', 'warn'] });
const inbox = app.get(PaymentInbox);
let peak = 0;

answer(null, {
  /** Milliseconds from the first of so many deliveries, which were made before, until all are handled. */
  async timed(count: number): Promise<number> {
    const deliveries = Array.from({ length: count }, verified);
    const start = performance.now();
    const left = deliveries.values();
    const lane = async (): Promise<void> => {
      for (const delivery of left) {
        await inbox.receive(delivery);
        // As requests do, which each come in a turn of the event loop.
        await turn();
      }
    };
    await Promise.all(Array.from({ length: 64 }, lane));
    return performance.now() - start;
  },
  async through(count: number): Promise<Footprint> {
    let left = count;
    const lane = async (): Promise<void> => {
      while (left > 0) {
        left -= 1;
        if (left % 1000 === 0) peak = Math.max(peak, process.memoryUsage.rss());
        await inbox.receive(verified());
        // As requests do: without a turn of the event loop nothing that is weakly held is ever let go.
        if (left % 16 === 0) await turn();
      }
    };
    await Promise.all(Array.from({ length: 64 }, lane));
    await turn();
    // Twice: what the first finds unreachable, finalizers may still hold.
    globalThis.gc!();
    globalThis.gc!();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return { heapMb: heapUsed / 1e6, bodiesMb: arrayBuffers / 1e6, peakRssMb: peak / 1e6 };
  },
  end: () => app.close(),
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function verified(): VerifiedDelivery {
  const event = payment(0) as PaymentEvent;
  return new VerifiedDelivery(
    'default',
    event,
    Buffer.from(JSON.stringify(event)),
    performance.now(),
  );
}
