import { expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import { Gate } from '../../support/time/gate.js';
import { onOneAdapter, webhookRequest } from '../../support/webhook/handler-application.js';
import type { Setup } from '../../support/webhook/webhook-application.js';

let gate: Gate;
let events: string[] = [];

/** A dependency of a handler. It closes in onModuleDestroy, as many dependencies do. */
@Injectable()
class Database implements OnModuleDestroy, OnApplicationBootstrap {
  onApplicationBootstrap(): void {
    events.push('database ready');
  }

  onModuleDestroy(): void {
    events.push('database closed');
  }
}

@Module({ providers: [Database], exports: [Database] })
class DatabaseModule {}

@Injectable()
class Orders {
  constructor(readonly database: Database) {}

  @OnPaymentEvent('*')
  async handle(): Promise<void> {
    events.push('handler began');
    await gate.pass();
    events.push('handler ended');
  }
}

@Module({ imports: [DatabaseModule], providers: [Orders] })
class OrdersModule {}

@Module({ imports: [OrdersModule] })
class ShopModule {}

const GLOBAL = { module: DatabaseModule, global: true };

const LAYOUTS: [string, Setup][] = [
  ['the root module', { providers: [Database, Orders] }],
  ['another module', { imports: [DatabaseModule], providers: [Orders] }],
  ['an imported module', { imports: [OrdersModule] }],
  ['a module two imports away', { imports: [ShopModule] }],
  ['a global module', { imports: [GLOBAL], providers: [Orders] }],
];

onOneAdapter('the order of closing', (start) => {
  for (const isGlobal of [false, true]) {
    it.each(LAYOUTS)(
      `WH-27 the application drains before %s closes the database that a handler uses (isGlobal: ${isGlobal})`,
      async (_, metadata) => {
        gate = new Gate();
        events = [];
        await using app = await start({ ...(metadata as object), payments: { isGlobal } });
        const response = app.send(webhookRequest());
        await gate.arrival;
        const closed = app.app.close();
        await new Promise((resolve) => setImmediate(resolve));
        gate.open();
        expect((await response).status).toBe(200);
        await closed;
        expect(events).toEqual([
          'database ready',
          'handler began',
          'handler ended',
          'database closed',
        ]);
      },
    );
  }
});
