import 'reflect-metadata';
import { describe, expect, it } from '@jest/globals';
import { ON_PAYMENT_EVENT, OnPaymentEvent } from './on-payment-event.decorator.js';

class Data {}

function metadataOf(type: { prototype: object }, method: string): unknown {
  return Reflect.getMetadata(ON_PAYMENT_EVENT, (type.prototype as Record<string, object>)[method]!);
}

describe('OnPaymentEvent', () => {
  it('gathers the types of stacked decorators, and name and data from any of them', () => {
    class Orders {
      @OnPaymentEvent(['a', 'b'], { name: 'orders' })
      @OnPaymentEvent('b', { data: Data })
      @OnPaymentEvent('c', { name: 'orders' })
      handle(): void {}
    }
    expect(metadataOf(Orders, 'handle')).toEqual({
      patterns: ['c', 'b', 'a'],
      name: 'orders',
      data: Data,
    });
  });

  it.each([
    [{ name: 'a' }, { name: 'b' }],
    [{ data: Data }, { data: class Other {} }],
  ])('refuses stacked decorators that contradict each other', (one, other) => {
    expect(() => {
      class Orders {
        @OnPaymentEvent('a', one)
        @OnPaymentEvent('b', other)
        handle(): void {}
      }
      return Orders;
    }).toThrow(/stands on handle several times with different options/);
  });

  it.each([[[]], [''], ['a*'], [['a', 'b.*.c']], [undefined], [null], [7], [{ type: 'a' }]])(
    'refuses the types %j',
    (types) => {
      expect(() => OnPaymentEvent(types as string)).toThrow(TypeError);
    },
  );

  it('refuses what is no method with a name, where it would never run', () => {
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
