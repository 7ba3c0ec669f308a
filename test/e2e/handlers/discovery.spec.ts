import { expect, it } from '@jest/globals';
import { Controller, Get, Injectable, Module } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent } from 'nestjs-payments';
import {
  webhookRequest,
  onOneAdapter,
  Recorder,
  stored,
} from '../../support/webhook/handler-application.js';

@Controller('orders')
class OrdersController extends Recorder {
  @Get()
  list(): string[] {
    return this.ran;
  }

  @OnPaymentEvent('transaction.completed')
  markPaid(event: PaymentEvent): void {
    this.note(event.id);
  }
}

@Injectable()
class Plain extends Recorder {
  label = 'plain';

  static labelled<P extends Plain>(plain: P, label: string): P {
    return Object.assign(plain, { label });
  }

  @OnPaymentEvent('transaction.completed')
  handle(): void {
    this.note(this.label);
  }
}

/** A subclass of {@link Plain} whose handler has the given name. */
function named(name: string): typeof Plain {
  class Named extends Plain {
    @OnPaymentEvent('transaction.completed', { name })
    override handle(): void {
      super.handle();
    }
  }
  return Named;
}

onOneAdapter('discovery of handlers', (start) => {
  it('WH-18 the application runs a handler on a controller that also has routes', async () => {
    await using app = await start({ controllers: [OrdersController] });
    await app.send(webhookRequest({ id: 'e-1' }));
    const answer = await fetch(`${app.url}/orders`);
    expect(await answer.json()).toEqual(['e-1']);
  });

  it('WH-18 the application runs each handler of class, factory, value and aliased providers once', async () => {
    const value = Plain.labelled(new Plain(), 'value');
    await using app = await start({
      providers: [
        { provide: 'CLASS', useClass: class ByClass extends named('ByClass') {} },
        {
          provide: 'FACTORY',
          useFactory: () =>
            Plain.labelled(new (class ByFactory extends named('ByFactory') {})(), 'factory'),
        },
        {
          provide: 'ASYNC',
          useFactory: async () =>
            Plain.labelled(new (class ByPromise extends named('ByPromise') {})(), 'later'),
        },
        { provide: 'VALUE', useValue: value },
        { provide: 'ALIAS', useExisting: 'VALUE' },
        { provide: 'SAME', useFactory: (same: Plain) => same, inject: ['VALUE'] },
      ],
    });
    const sent = webhookRequest();
    expect(await app.send(sent)).toMatchObject({ status: 200 });
    const { deliveries } = await stored(app, JSON.parse(sent.body.toString()).id);
    expect(deliveries.map(({ handler }) => handler).toSorted()).toEqual([
      'ByClass',
      'ByFactory',
      'ByPromise',
      'transaction.completed#handle',
    ]);
    expect(value.ran).toEqual(['value']);
    expect(app.app.get<Plain>('FACTORY').ran).toEqual(['factory']);
    expect(app.app.get<Plain>('ASYNC').ran).toEqual(['later']);
  });

  it('WH-18 the application finds handlers in nested modules and in global modules', async () => {
    const ran: string[] = [];
    @Injectable()
    class Deep {
      @OnPaymentEvent('*')
      handle(): void {
        ran.push('deep');
      }
    }
    @Module({ providers: [Deep] })
    class DeepModule {}
    @Module({ imports: [DeepModule] })
    class MiddleModule {}
    @Injectable()
    class InGlobal {
      @OnPaymentEvent('*')
      wide(): void {
        ran.push('wide');
      }
    }
    @Module({})
    class WideModule {}
    await using app = await start({
      imports: [MiddleModule, { module: WideModule, global: true, providers: [InGlobal] }],
    });
    await app.send(webhookRequest());
    expect(ran.toSorted()).toEqual(['deep', 'wide']);
  });

  it('WH-18 the application calls no getter, setter or symbol method while it searches for handlers', async () => {
    const touched: string[] = [];
    @Injectable()
    class Guarded {
      get lazy(): never {
        touched.push('getter');
        throw new Error('looked at');
      }

      set lazy(_value: unknown) {
        touched.push('setter');
      }

      get [Symbol.toStringTag](): string {
        touched.push('symbol getter');
        return 'Guarded';
      }

      [Symbol.for('handler')](): void {
        touched.push('symbol method');
      }

      @OnPaymentEvent('*')
      handle(): void {
        touched.push('handled');
      }
    }
    await using app = await start({
      providers: [
        Guarded,
        { provide: 'NULL', useValue: null },
        { provide: 'TEXT', useValue: 'text' },
        { provide: 'BARE', useValue: Object.create(null) },
        { provide: 'FUNCTION', useValue: () => {} },
      ],
    });
    expect(touched).toEqual([]);
    await app.send(webhookRequest());
    expect(touched).toEqual(['handled']);
  });
});
