import { expect, it } from '@jest/globals';
import { OnPaymentEvent } from 'nestjs-payments';
import type { PaymentEvent, PaymentEventContext, TransactionCompletedData } from 'nestjs-payments';

// What the compiler says of a handler is a promise too. It is kept by `tsc -b test`: every line under
// `@ts-expect-error` must be an error, and no other.

declare module 'nestjs-payments' {
  interface PaymentEventMap {
    'handlers.types.settled': { payoutId: string; fee: number };
  }
}

class Dto {
  amount!: number;
}

/** `true` where two types are one. */
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

  @OnPaymentEvent('transaction.completed')
  nothing(): void {}

  @OnPaymentEvent('transaction.completed')
  async later(_event: PaymentEvent): Promise<void> {}
}

abstract class Wrong {
  // @ts-expect-error the event of another type
  @OnPaymentEvent('transaction.completed')
  another(_event: PaymentEvent<'webhook.test'>): void {}

  // @ts-expect-error any type of the family may come
  @OnPaymentEvent('transaction.*')
  tooNarrow(_event: PaymentEvent<'transaction.completed'>): void {}

  // @ts-expect-error either of them may come
  @OnPaymentEvent(['transaction.completed', 'webhook.test'])
  oneOfTwo(_event: PaymentEvent<'transaction.completed'>): void {}

  // @ts-expect-error data of an undeclared type is unknown
  @OnPaymentEvent('a type nobody declared')
  assumed(_event: PaymentEvent<string, { amount: number }>): void {}

  // @ts-expect-error the data class says otherwise
  @OnPaymentEvent('*', { data: Dto })
  untyped(_event: PaymentEvent<string, { amount: string }>): void {}

  // @ts-expect-error the first parameter is the event
  @OnPaymentEvent('transaction.completed')
  dataFirst(_data: TransactionCompletedData): void {}

  // @ts-expect-error the second is its context
  @OnPaymentEvent('transaction.completed')
  second(_event: PaymentEvent, _id: string): void {}

  // @ts-expect-error nothing is passed third
  @OnPaymentEvent('transaction.completed')
  third(_event: PaymentEvent, _context: PaymentEventContext, _more: string): void {}
}

it('WH-18 types the event of a handler by its decorator', () => {
  expect([Right, Wrong]).toHaveLength(2);
});

it('WH-18 rejects a decorator on a method that would never run, as the compiler does', () => {
  expect(() => {
    class Static {
      // @ts-expect-error a symbol names no handler
      @OnPaymentEvent('*')
      [Symbol.for('handler')](): void {}
    }
    return Static;
  }).toThrow(TypeError);
  expect(() => {
    class Arrow {
      // @ts-expect-error a property is no method
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
  // @ts-expect-error no types at all
  expect(() => OnPaymentEvent()).toThrow(TypeError);
  // @ts-expect-error a number is no type
  expect(() => OnPaymentEvent(7)).toThrow(TypeError);
});
