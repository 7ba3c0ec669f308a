import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { ON_PAYMENT_EVENT, OnPaymentEvent } from './on-payment-event.decorator.js';
import type { OnPaymentEventOptions } from './on-payment-event.decorator.js';
import { exponential, fixed, none } from './retry-schedule.js';

class Data {}

function metadataOf(type: { prototype: object }, method: string): unknown {
  return Reflect.getMetadata(ON_PAYMENT_EVENT, (type.prototype as Record<string, object>)[method]!);
}

describe('OnPaymentEvent', () => {
  it('OnPaymentEvent() merges the types and the options of several decorators on one method', () => {
    class Orders {
      @OnPaymentEvent(['a', 'b'], { name: 'orders' })
      @OnPaymentEvent('b', { data: Data, concurrency: 3 })
      @OnPaymentEvent('c', { name: 'orders', timeoutMs: 500, retry: none })
      handle(): void {}
    }
    expect(metadataOf(Orders, 'handle')).toEqual({
      patterns: ['c', 'b', 'a'],
      name: 'orders',
      data: Data,
      concurrency: 3,
      timeoutMs: 500,
      retry: none,
    });
  });

  it.each<[OnPaymentEventOptions, OnPaymentEventOptions]>([
    [{ name: 'a' }, { name: 'b' }],
    [{ data: Data }, { data: class Other {} }],
    [{ concurrency: 1 }, { concurrency: 2 }],
    [{ timeoutMs: 1 }, { timeoutMs: 2 }],
    [{ retry: none }, { retry: exponential() }],
  ])(
    'OnPaymentEvent() rejects two decorators on one method that set an option to different values',
    (first, second) => {
      expect(() => {
        class Orders {
          @OnPaymentEvent('a', first)
          @OnPaymentEvent('b', second)
          handle(): void {}
        }
        return Orders;
      }).toThrow(/applied to handle several times with different values of/);
    },
  );

  it.each([
    ['concurrency', 1, 1000],
    ['timeoutMs', 1, 3_600_000],
  ])('OnPaymentEvent() rejects a value of "%s" that is out of bounds', (option, min, max) => {
    for (const value of [min, max]) {
      expect(() => OnPaymentEvent('a', { [option]: value })).not.toThrow();
    }
    for (const value of [min - 1, max + 1, 1.5, NaN, Infinity, '5', null]) {
      expect(() => OnPaymentEvent('a', { [option]: value })).toThrow(
        new RegExp(`"@OnPaymentEvent\\.${option}" must be a whole number of \\w+ from 1 to ${max}`),
      );
    }
  });

  it('OnPaymentEvent() accepts retry schedules and rejects other values of "retry"', () => {
    for (const retry of [exponential(), fixed([5]), none]) {
      expect(() => OnPaymentEvent('a', { retry })).not.toThrow();
    }
    for (const retry of [3, 'none', {}, null, { attempts: 9, waitsMs: [], jitter: 0 }]) {
      expect(() => OnPaymentEvent('a', { retry: retry as never })).toThrow(
        /"@OnPaymentEvent\.retry" must be a retry schedule/,
      );
    }
  });

  it.each([[[]], [''], ['a*'], [['a', 'b.*.c']], [undefined], [null], [7], [{ type: 'a' }]])(
    'OnPaymentEvent() rejects %j as event types',
    (types) => {
      expect(() => OnPaymentEvent(types as string)).toThrow(TypeError);
    },
  );

  it('OnPaymentEvent() rejects static methods, methods named by a symbol, accessors and properties', () => {
    const decorate = OnPaymentEvent('a') as unknown as (
      target: object,
      name: string | symbol,
      descriptor?: PropertyDescriptor,
    ) => void;
    const method = { value: () => {} };
    expect(() => decorate({}, Symbol('s'), method)).toThrow(/Symbol\(s\).*would never run/s);
    expect(() => decorate(class Orders {}, 'fixed', method)).toThrow(/static/);
    expect(() => decorate({}, 'accessor', { get: () => 1 })).toThrow(/accessor/);
    expect(() => decorate({}, 'property')).toThrow(/property/);
  });
});
