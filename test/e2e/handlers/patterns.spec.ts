import { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it } from '@jest/globals';
import { Controller, Get, Inject, Injectable, Module, Scope, UseGuards } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import {
  onOneAdapter,
  Recorder,
  stored,
  webhookRequest,
} from '../../support/webhook/handler-application.js';
import { REQUEST } from '@nestjs/core';

@Injectable()
class Patterns extends Recorder {
  @OnPaymentEvent('transaction.completed')
  exact(): void {
    this.note('exact');
  }

  @OnPaymentEvent(['transaction.completed', 'payout.settled'])
  list(): void {
    this.note('list');
  }

  @OnPaymentEvent('transaction.*')
  family(): void {
    this.note('family');
  }

  @OnPaymentEvent('*')
  all(): void {
    this.note('all');
  }

  @OnPaymentEvent('transaction.reversed')
  @OnPaymentEvent(['payout.settled', 'transaction.completed'])
  @OnPaymentEvent('transaction.*')
  stacked(): void {
    this.note('stacked');
  }
}

class Base extends Recorder {
  @OnPaymentEvent('a')
  inherited(): void {
    this.note(`inherited by ${this.constructor.name}`);
  }

  @OnPaymentEvent('a')
  replaced(): void {
    this.note('the base');
  }

  @OnPaymentEvent('a')
  silenced(): void {
    this.note('silenced');
  }
}

@Injectable()
class First extends Base {
  @OnPaymentEvent('b')
  override replaced(): void {
    this.note('the override');
  }

  override silenced(): void {
    this.note('the override without a decorator');
  }
}

@Injectable()
class Second extends Base {
  @OnPaymentEvent('a', { name: 'second' })
  override inherited(): void {
    super.inherited();
  }
}

/** A class to which a mixin copied the decorated method of another class. */
@Injectable()
class Mixed extends Recorder {}
Object.defineProperty(Mixed.prototype, 'exact', {
  ...Object.getOwnPropertyDescriptor(Patterns.prototype, 'exact'),
});

const MATCHES: [string, string[]][] = [
  ['transaction.completed', ['all', 'exact', 'family', 'list', 'stacked']],
  ['payout.settled', ['all', 'list', 'stacked']],
  ['transaction.reversed', ['all', 'family', 'stacked']],
  ['transaction.refund.partial', ['all', 'family', 'stacked']],
  ['transaction.completed.again', ['all', 'family', 'stacked']],
  ['transaction', ['all']],
  ['transactions.completed', ['all']],
  ['Transaction.Completed', ['all']],
];

onOneAdapter('patterns and inheritance of handlers', (start) => {
  it('WH-18 the application runs a handler once if one or more of its patterns match the event type', async () => {
    await using app = await start({ providers: [Patterns] });
    const { ran } = app.app.get(Patterns);
    for (const [eventType, names] of MATCHES) {
      ran.length = 0;
      expect(await app.send(webhookRequest({ eventType }))).toMatchObject({ status: 200 });
      expect([eventType, ...ran.toSorted()]).toEqual([eventType, ...names]);
    }
  });

  it('WH-18 the application runs an inherited handler on each subclass, and an override only for its own event types', async () => {
    await using app = await start({ providers: [First, Second] });
    await app.send(webhookRequest({ eventType: 'a' }));
    expect(app.app.get(First).ran).toEqual(['inherited by First']);
    expect(app.app.get(Second).ran.toSorted()).toEqual([
      'inherited by Second',
      'silenced',
      'the base',
    ]);
    await app.send(webhookRequest({ eventType: 'b' }));
    expect(app.app.get(First).ran).toEqual(['inherited by First', 'the override']);
  });

  it('WH-18 the application runs a handler that a mixin copied to a class', async () => {
    await using app = await start({ providers: [Mixed] });
    expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
    expect(app.app.get(Mixed).ran).toEqual(['exact']);
  });
});

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

interface PaymentRequest {
  event: PaymentEvent;
  context: PaymentEventContext;
}
interface Note {
  instance: unknown;
  request?: PaymentRequest;
  event: PaymentEvent;
  extra?: unknown;
}
let notes: Note[] = [];

@Injectable({ scope: Scope.REQUEST })
class RequestScoped {
  constructor(@Inject(REQUEST) readonly request: PaymentRequest) {}

  @OnPaymentEvent('*')
  handle(event: PaymentEvent): void {
    notes.push({ instance: this, request: this.request, event });
  }
}

@Injectable({ scope: Scope.TRANSIENT })
class Transient {
  @OnPaymentEvent('*')
  handle(event: PaymentEvent): void {
    notes.push({ instance: this, event });
  }
}

@Injectable({ scope: Scope.REQUEST, durable: true })
class Durable extends RequestScoped {}

@Injectable({ scope: Scope.REQUEST })
class Session {
  constructor(@Inject(REQUEST) readonly request: PaymentRequest) {}
}

@Injectable()
class ByDependency {
  constructor(@Inject(Session) readonly session: Session) {}

  @OnPaymentEvent('*')
  handle(event: PaymentEvent): void {
    notes.push({ instance: this, request: this.session.request, event });
  }
}

@Injectable({ scope: Scope.REQUEST })
class ScopedGuard implements CanActivate {
  constructor(@Inject(REQUEST) readonly request: PaymentRequest) {}

  canActivate(context: ExecutionContext): boolean {
    return context.getArgByIndex(0) === this.request.event;
  }
}

@Injectable()
class ByEnhancer {
  @UseGuards(ScopedGuard)
  @OnPaymentEvent('*')
  handle(event: PaymentEvent): void {
    notes.push({ instance: this, event });
  }
}

@Controller({ path: 'scoped', scope: Scope.REQUEST })
class ScopedController extends RequestScoped {}

class Made {
  constructor(readonly request: PaymentRequest) {}

  @OnPaymentEvent('*')
  handle(event: PaymentEvent): void {
    notes.push({ instance: this, request: this.request, event });
  }
}

onOneAdapter('scopes of handlers', (start) => {
  it.each([
    ['request-scoped', { providers: [RequestScoped] }],
    ['transient', { providers: [Transient] }],
    ['durable', { providers: [Durable] }],
    ['request-scoped by a dependency', { providers: [Session, ByDependency] }],
    ['request-scoped by a guard', { providers: [ByEnhancer] }],
    ['request-scoped under a token', { providers: [{ provide: 'X', useClass: RequestScoped }] }],
    [
      'request-scoped by a factory for its class',
      {
        providers: [
          {
            provide: Made,
            scope: Scope.REQUEST,
            inject: [REQUEST],
            useFactory: (request: PaymentRequest) => new Made(request),
          },
        ],
      },
    ],
    ['a request-scoped controller', { controllers: [ScopedController] }],
  ])(
    'WH-18 the application handles each event with a new instance if the handler is %s, and provides the event as REQUEST',
    async (_, metadata) => {
      notes = [];
      await using app = await start(metadata);
      for (const id of ['e-1', 'e-2']) {
        expect(await app.send(webhookRequest({ id }))).toMatchObject({ status: 200 });
      }
      expect(notes.map(({ event }) => event.id)).toEqual(['e-1', 'e-2']);
      expect(notes[0]!.instance).not.toBe(notes[1]!.instance);
      for (const { request, event } of notes) {
        if (request === undefined) continue;
        expect(request.event).toBe(event);
        expect(request.context).toMatchObject({ company: 'default', attempt: 1 });
      }
    },
  );

  it('WH-18 the application runs each attempt of each request-scoped handler with a new instance', async () => {
    notes = [];
    let failures = 1;
    @Injectable({ scope: Scope.REQUEST })
    class Flaky {
      @OnPaymentEvent('*')
      first(event: PaymentEvent): void {
        notes.push({ instance: this, event });
        if (failures > 0) {
          failures -= 1;
          throw new Error('not yet');
        }
      }

      @OnPaymentEvent('*')
      second(event: PaymentEvent): void {
        notes.push({ instance: this, event });
      }
    }
    await using app = await start({ providers: [Flaky] });
    const sent = webhookRequest();
    expect(await app.send(sent)).toMatchObject({ status: 503 });
    expect(await app.send(sent)).toMatchObject({ status: 200 });
    expect(notes).toHaveLength(3);
    expect(new Set(notes.map(({ instance }) => instance)).size).toBe(3);
  });

  it('WH-18 the application runs the handlers of two modules that use the same injection token', async () => {
    notes = [];
    const declare = (name: string) => {
      @Injectable({ scope: Scope.REQUEST })
      class Handlers {
        @OnPaymentEvent('*', { name })
        [name](event: PaymentEvent): void {
          notes.push({ instance: this, event, extra: name });
        }
      }
      @Module({ providers: [{ provide: 'HANDLERS', useClass: Handlers }] })
      class Holder {}
      return Holder;
    };
    await using app = await start({ imports: [declare('left'), declare('right')] });
    expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
    expect(notes.map(({ extra }) => String(extra)).toSorted()).toEqual(['left', 'right']);
  });

  it('WH-18 the application runs a request-scoped handler once if its class also has aliases', async () => {
    notes = [];
    abstract class Base {
      @OnPaymentEvent('*')
      handle(event: PaymentEvent): void {
        notes.push({ instance: this, event });
      }
    }
    @Injectable({ scope: Scope.REQUEST })
    class Subclass extends Base {}
    await using app = await start({
      providers: [
        Subclass,
        { provide: Base, useExisting: Subclass },
        { provide: 'X', useExisting: Subclass },
      ],
    });
    expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
    expect(notes.map(({ instance }) => instance instanceof Subclass)).toEqual([true]);
  });

  it('the application runs handlers outside the async context of the webhook request that woke the worker', async () => {
    const requests = new AsyncLocalStorage<string>();
    const seen: unknown[] = [];
    @Injectable()
    class Curious {
      @OnPaymentEvent('*')
      async handle(): Promise<void> {
        seen.push(requests.getStore());
        await Promise.resolve();
        seen.push(requests.getStore());
      }
    }
    await using app = await start({
      providers: [Curious],
      main: (nest) => {
        nest.use((_request: unknown, _response: unknown, next: () => void) => {
          requests.run('a request', next);
        });
      },
    });
    await app.send(webhookRequest());
    await app.send(webhookRequest());
    expect(seen).toEqual([undefined, undefined, undefined, undefined]);
  });
});

const newer: [id: string, newer: boolean][] = [];

@Injectable()
class Orders {
  @OnPaymentEvent('transaction.updated')
  async update({ id }: PaymentEvent, { newerHandled }: PaymentEventContext): Promise<void> {
    newer.push([id, await newerHandled()]);
  }
}

onOneAdapter('newerHandled() of the context', (start) => {
  it('newerHandled() is true if the handler has handled a later event of the same transaction', async () => {
    await using app = await start({ providers: [Orders] });
    const send = async (id: string, second: number, transactionId = 't-1') => {
      const timestamp = new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
      const event = { id, eventType: 'transaction.updated', timestamp, data: { transactionId } };
      expect(await app.send(webhookRequest(event))).toMatchObject({ status: 200 });
    };
    await send('second', 2);
    await send('first', 1);
    await send('third', 3);
    await send('other', 0, 't-2');
    expect(newer).toEqual([
      ['second', false],
      ['first', true],
      ['third', false],
      ['other', false],
    ]);
  });
});
