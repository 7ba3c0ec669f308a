import { expect, it } from '@jest/globals';
import { Injectable, Scope, UseGuards, UseInterceptors } from '@nestjs/common';
import type { CallHandler, CanActivate, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import { concat, EMPTY, map, of, throwError } from 'rxjs';
import type { Observable } from 'rxjs';
import {
  HOSTS,
  webhookRequest,
  onOneAdapter,
  storedDelivery,
} from '../../support/webhook/handler-application.js';

/** Calls of guards, interceptors and handlers, in order. */
let seen: unknown[] = [];

@Injectable()
class Ledger {
  readonly open = true;
}

/** A guard with an injected dependency. */
@Injectable()
class TypeGuard implements CanActivate {
  constructor(private readonly ledger: Ledger) {}

  canActivate(context: ExecutionContext): boolean {
    const [event, attempt] = context.getArgs<[PaymentEvent, PaymentEventContext]>();
    seen.push({
      guard: context.getType(),
      args: context.getArgs().length,
      of: `${context.getClass().name}.${context.getHandler().name}`,
      company: attempt.company,
    });
    return this.ledger.open && event.data['amount'] !== 0;
  }
}

@Injectable({ scope: Scope.TRANSIENT })
class TransientGuard extends TypeGuard {}

@Injectable()
class Wrap implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    seen.push(`before ${context.getType()}`);
    return next.handle().pipe(
      map((result: unknown) => {
        seen.push(`after ${String(result)}`);
        return result;
      }),
    );
  }
}

class Guarded {
  @UseGuards(TypeGuard)
  @OnPaymentEvent('*')
  onMethod(event: PaymentEvent): void {
    seen.push(event.id);
  }
}

@UseGuards(TypeGuard)
class GuardedClass {
  @OnPaymentEvent('*')
  onClass(event: PaymentEvent): void {
    seen.push(event.id);
  }
}

class TransientlyGuarded {
  @UseGuards(TransientGuard)
  @OnPaymentEvent('*')
  onMethod(event: PaymentEvent): void {
    seen.push(event.id);
  }
}

onOneAdapter('enhancers of handlers', (start) => {
  it.each(
    [Guarded, GuardedClass, TransientlyGuarded].flatMap((base) =>
      HOSTS.map(([kind, declare]) => [base.name, kind, declare(base)] as const),
    ),
  )(
    'WH-19 the application calls the guard of %s, %s, with the event and its context',
    async (name, _kind, host) => {
      seen = [];
      await using app = await start({ ...host, providers: [Ledger, ...(host.providers ?? [])] });
      expect(await app.send(webhookRequest({ id: 'e-1' }))).toMatchObject({ status: 200 });
      const of = `${name}.${name === 'GuardedClass' ? 'onClass' : 'onMethod'}`;
      expect(seen).toEqual([{ guard: 'payments', args: 2, of, company: 'default' }, 'e-1']);
      expect(await app.send(webhookRequest({ id: 'e-2', data: { amount: 0 } }))).toMatchObject({
        status: 503,
      });
      expect(seen).not.toContain('e-2');
      const { state, lastError } = await storedDelivery(app, 'e-2');
      expect([state, lastError]).toEqual(['pending', 'ForbiddenException: Forbidden resource']);
    },
  );

  it.each([
    ['a promise', () => Promise.resolve('value')],
    ['an observable', () => of('first', 'value')],
  ])(
    'WH-19 the application runs interceptors around a handler that returns %s',
    async (_, returnValue) => {
      seen = [];
      @UseInterceptors(Wrap)
      class Orders {
        @OnPaymentEvent('*')
        handle(): unknown {
          seen.push('handler');
          return returnValue();
        }
      }
      await using app = await start({ providers: [Orders] });
      expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
      expect(seen[0]).toBe('before payments');
      expect(seen[1]).toBe('handler');
      expect(seen.at(-1)).toBe('after value');
    },
  );

  it.each([
    ['an observable that fails', () => throwError(() => new Error('late'))],
    [
      'an observable that fails after a value',
      () =>
        concat(
          of(1),
          throwError(() => 'late'),
        ),
    ],
    ['an observable without any value', () => EMPTY],
    ['a promise that rejects', () => Promise.reject(new Error('late'))],
  ])('WH-19 the attempt fails if the handler returns %s', async (_, returnValue) => {
    class Orders {
      @OnPaymentEvent('*')
      handle(): unknown {
        return returnValue();
      }
    }
    await using app = await start({ providers: [Orders] });
    expect(await app.send(webhookRequest({ id: 'e-1' }))).toMatchObject({ status: 503 });
    expect((await storedDelivery(app, 'e-1')).state).toBe('pending');
  });
});
