import { expect, it } from '@jest/globals';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, TransactionCompletedData } from 'nestjs-payments';

import { z } from 'zod';

// `tsc -b test` checks these types: it fails unless exactly the lines under `@ts-expect-error` are errors.

declare module 'nestjs-payments' {
  interface PaymentEventMap {
    'handlers.types.settled': { payoutId: string; fee: number };
  }
}

class Dto {
  amount!: number;
}

/** `true` if two types are the same. */
type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;

class Right {
  @OnPaymentEvent('transaction.completed')
  known(event: PaymentEvent<'transaction.completed'>): string {
    const same: Same<typeof event.data, TransactionCompletedData> = true;
    expect(same).toBe(true);
    const sameType: Same<typeof event.eventType, 'transaction.completed'> = true;
    expect(sameType).toBe(true);
    return event.data.transactionId;
  }

  @OnPaymentEvent('handlers.types.settled')
  augmented(event: PaymentEvent<'handlers.types.settled'>): number {
    return event.data.fee;
  }

  @OnPaymentEvent('a type nobody declared')
  unknown(event: PaymentEvent): unknown {
    const same: Same<typeof event.data, Record<string, unknown>> = true;
    expect(same).toBe(true);
    return event.data['anything'];
  }

  @OnPaymentEvent('*')
  all(event: PaymentEvent, _context: PaymentEventContext): string {
    return event.eventType;
  }

  @OnPaymentEvent('transaction.*')
  family(event: PaymentEvent): string {
    return event.eventType;
  }

  @OnPaymentEvent(['transaction.completed', 'handlers.types.settled'])
  either(event: PaymentEvent<'transaction.completed' | 'handlers.types.settled'>): void {
    const same: Same<typeof event.eventType, 'transaction.completed' | 'handlers.types.settled'> =
      true;
    expect(same).toBe(true);
  }

  @OnPaymentEvent('*', { data: Dto })
  typed(event: PaymentEvent<string, Dto>): number {
    return event.data.amount;
  }

  @OnPaymentEvent('*', { schema: z.object({ amount: z.number() }) })
  ofSchema(event: PaymentEvent<string, { amount: number }>): number {
    return event.data.amount;
  }

  @OnPaymentEvent('transaction.completed')
  nothing(): void {}

  @OnPaymentEvent('transaction.completed')
  async later(_event: PaymentEvent): Promise<void> {}
}

abstract class Wrong {
  // @ts-expect-error the event has another type
  @OnPaymentEvent('transaction.completed')
  another(_event: PaymentEvent<'webhook.test'>): void {}

  // @ts-expect-error events of the whole family arrive
  @OnPaymentEvent('transaction.*')
  tooNarrow(_event: PaymentEvent<'transaction.completed'>): void {}

  // @ts-expect-error events of both types arrive
  @OnPaymentEvent(['transaction.completed', 'webhook.test'])
  oneOfTwo(_event: PaymentEvent<'transaction.completed'>): void {}

  // @ts-expect-error data of an undeclared type is unknown
  @OnPaymentEvent('a type nobody declared')
  assumed(_event: PaymentEvent<string, { amount: number }>): void {}

  // @ts-expect-error the data class has another type for amount
  @OnPaymentEvent('*', { data: Dto })
  untyped(_event: PaymentEvent<string, { amount: string }>): void {}

  // @ts-expect-error the schema has another type for amount
  @OnPaymentEvent('*', { schema: z.object({ amount: z.number() }) })
  notOfSchema(_event: PaymentEvent<string, { amount: string }>): void {}

  // @ts-expect-error the output of the schema is no object
  @OnPaymentEvent('*', { schema: z.number() })
  noObject(_event: PaymentEvent): void {}

  // @ts-expect-error the first parameter is the event
  @OnPaymentEvent('transaction.completed')
  dataFirst(_data: TransactionCompletedData): void {}

  // @ts-expect-error the second parameter is the context
  @OnPaymentEvent('transaction.completed')
  second(_event: PaymentEvent, _id: string): void {}

  // @ts-expect-error there is no third argument
  @OnPaymentEvent('transaction.completed')
  third(_event: PaymentEvent, _context: PaymentEventContext, _more: string): void {}
}

it("WH-18 the compiler checks the type of a handler's event against its decorator", () => {
  expect([Right, Wrong]).toHaveLength(2);
});

it('WH-18 OnPaymentEvent() throws if it decorates a method that would never run', () => {
  expect(() => {
    class Static {
      // @ts-expect-error a handler's name cannot be a symbol
      @OnPaymentEvent('*')
      [Symbol.for('handler')](): void {}
    }
    return Static;
  }).toThrow(TypeError);
  expect(() => {
    class Arrow {
      // @ts-expect-error a property is not a method
      @OnPaymentEvent('*')
      handle = () => {};
    }
    return Arrow;
  }).toThrow(TypeError);
  expect(() => {
    class Static {
      @OnPaymentEvent('*')
      static handle(): void {}
    }
    return Static;
  }).toThrow(/static/);
  // @ts-expect-error the event types are missing
  expect(() => OnPaymentEvent()).toThrow(TypeError);
  // @ts-expect-error a number is not an event type
  expect(() => OnPaymentEvent(7)).toThrow(TypeError);
});
