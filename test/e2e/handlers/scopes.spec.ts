import { expect, it } from '@jest/globals';
import { Controller, Inject, Injectable, Module, Scope } from '@nestjs/common';
import type { CanActivate, ExecutionContext } from '@nestjs/common';
import { UseGuards } from '@nestjs/common';
import { REQUEST } from '@nestjs/core';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { webhookRequest, onOneAdapter } from '../../support/webhook/handler-application.js';

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
    'WH-18 the application runs each event on a new instance if the handler is %s, with the event as REQUEST',
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

  it('WH-18 the application runs each attempt of each request-scoped handler on a new instance', async () => {
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

  it('WH-18 the application runs all events on the one instance of a singleton', async () => {
    let made = 0;
    let ran = 0;
    @Injectable()
    class Single {
      constructor() {
        made += 1;
      }

      @OnPaymentEvent('*')
      handle(): void {
        ran += 1;
      }
    }
    await using app = await start({ providers: [Single] });
    for (let i = 0; i < 3; i += 1) await app.send(webhookRequest());
    expect([made, ran]).toEqual([1, 3]);
  });
});
