import { expect, it } from '@jest/globals';
import {
  Body,
  createParamDecorator,
  Injectable,
  Scope,
  UseFilters,
  UsePipes,
  ValidationPipe,
} from '@nestjs/common';
import type { ArgumentMetadata, ExecutionContext, PipeTransform } from '@nestjs/common';
import { IsIn } from 'class-validator';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext } from 'nestjs-payments';
import {
  webhookRequest,
  onOneAdapter,
  storedDelivery,
} from '../../support/webhook/handler-application.js';

let seen: unknown[] = [];

@Injectable()
class Rename implements PipeTransform {
  transform(value: unknown): unknown {
    const { id } = value as { id?: string };
    return id === undefined ? value : { ...(value as PaymentEvent), id: `piped ${id}` };
  }
}

class PaidEvent {
  @IsIn(['transaction.completed'])
  eventType!: string;
}

const TransactionId = createParamDecorator(
  (_: unknown, context: ExecutionContext) =>
    `${context.getType()} ${String(context.getArgByIndex<PaymentEvent>(0).data['transactionId'])}`,
);

onOneAdapter('pipes of handlers', (start) => {
  it.each([
    ['the method', 'on'],
    ['the class', 'over'],
    ['the parameter', 'at'],
  ] as const)(
    'WH-19 the application runs pipes of %s on the event, for singleton and request-scoped providers',
    async (_, where) => {
      seen = [];
      class On {
        @UsePipes(Rename)
        @OnPaymentEvent('*')
        handle(event: PaymentEvent, context: PaymentEventContext): void {
          seen.push(event.id, context.company);
        }
      }
      @UsePipes(Rename)
      class Over {
        @OnPaymentEvent('*')
        handle(event: PaymentEvent, context: PaymentEventContext): void {
          seen.push(event.id, context.company);
        }
      }
      class At {
        @OnPaymentEvent('*')
        handle(@Body(Rename) event: PaymentEvent, context: PaymentEventContext): void {
          seen.push(event.id, context.company);
        }
      }
      const base = { on: On, over: Over, at: At }[where];
      for (const decorate of [Injectable(), Injectable({ scope: Scope.REQUEST })]) {
        const Subclass = class Subclass extends base {};
        decorate(Subclass);
        await using app = await start({ providers: [Subclass] });
        await app.send(webhookRequest({ id: 'e-1' }));
      }
      expect(seen).toEqual(['piped e-1', 'default', 'piped e-1', 'default']);
    },
  );

  it('WH-19 the application validates the event by the type of its parameter with a ValidationPipe', async () => {
    seen = [];
    @Injectable()
    class Orders {
      @UsePipes(new ValidationPipe({ transform: true }))
      @OnPaymentEvent('*')
      handle(event: PaidEvent & PaymentEvent, context: PaymentEventContext): void {
        seen.push(event.eventType, context.handler);
      }

      @UsePipes(new ValidationPipe({ transform: true }))
      @OnPaymentEvent('*')
      typed(event: PaidEvent): void {
        seen.push(event instanceof PaidEvent);
      }
    }
    await using app = await start({ providers: [Orders] });
    expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
    expect(seen).toEqual(['transaction.completed', '*#handle', true]);
    expect(await app.send(webhookRequest({ id: 'e-2', eventType: 'other' }))).toMatchObject({
      status: 503,
    });
    expect(await storedDelivery(app, 'e-2', '*#typed')).toMatchObject({
      state: 'pending',
      lastError: 'BadRequestException: Bad Request Exception',
    });
  });

  it('WH-19 the application passes the execution context to parameter decorators of the application', async () => {
    seen = [];
    @Injectable()
    class Orders {
      @OnPaymentEvent('*')
      handle(@TransactionId() id: unknown, context: PaymentEventContext): void {
        seen.push(id, context.handler);
      }
    }
    await using app = await start({ providers: [Orders] });
    await app.send(webhookRequest({ data: { transactionId: 't-1' } }));
    expect(seen).toEqual(['payments t-1', '*#handle']);
  });

  it('WH-19 the application passes a field of the event to a parameter with @Body(field)', async () => {
    seen = [];
    @Injectable()
    class Orders {
      @OnPaymentEvent('*')
      handle(@Body('data') data: unknown, context: PaymentEventContext): void {
        seen.push(data, context.handler);
      }
    }
    await using app = await start({ providers: [Orders] });
    await app.send(webhookRequest({ data: { transactionId: 't-1' } }));
    expect(seen).toEqual([{ transactionId: 't-1' }, '*#handle']);
  });

  it('WH-19 the application runs each pipe once on each parameter of a handler that has a filter', async () => {
    seen = [];
    class Count implements PipeTransform {
      transform(value: unknown, { type, metatype }: ArgumentMetadata): unknown {
        seen.push([type, metatype?.name]);
        return value;
      }
    }
    class Filter {
      catch(): void {}
    }
    @Injectable()
    class Orders {
      @UseFilters(new Filter())
      @UsePipes(new Count())
      @OnPaymentEvent('*')
      handle(@TransactionId() _id: unknown, _context: PaymentEventContext): void {}
    }
    await using app = await start({ providers: [Orders] });
    expect(await app.send(webhookRequest())).toMatchObject({ status: 200 });
    expect(seen).toHaveLength(2);
    expect(seen).toContainEqual(['custom', 'Object']);
  });
});
