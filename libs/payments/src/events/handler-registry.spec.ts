import { describe, expect, it } from '@jest/globals';
import { PaymentsError } from '../errors/payments-error.js';
import { defaultName, HandlerRegistry } from './handler-registry.js';

function registry(...handlers: [name: string, ...patterns: string[]][]): HandlerRegistry {
  const made = new HandlerRegistry();
  for (const [name, ...patterns] of handlers) {
    const source = `Class.${name} (App)`;
    made.add({ name, source, patterns, options: {}, invoke: async () => {} });
  }
  return made;
}

describe('HandlerRegistry', () => {
  it('names the handlers of a type, each once, in the order they were added', () => {
    const handlers = registry(['c', 'x'], ['a', '*', 'x'], ['b', 'y'], ['d', 'y.*', 'x']);
    expect(handlers.matching('x')).toEqual(['c', 'a', 'd']);
    expect(handlers.matching('y.z')).toEqual(['a', 'd']);
    expect(handlers.matching('constructor')).toEqual(['a']);
    expect(handlers.names()).toEqual(['c', 'a', 'b', 'd']);
  });

  it('knows no handler by the name of a property of every object', () => {
    const handlers = registry(['a', 'x']);
    for (const name of ['constructor', '__proto__', 'toString']) {
      expect(handlers.get(name)).toBeUndefined();
    }
    expect(registry(['__proto__', 'x']).get('__proto__')?.patterns).toEqual(['x']);
  });

  it('IN-37 refuses a second handler of one name, and names both and the fix', () => {
    const both = (): HandlerRegistry => registry(['a', 'x'], ['a', 'y']);
    expect(both).toThrow(PaymentsError);
    expect(both).toThrow(
      /Class\.a \(App\) and Class\.a \(App\).*@OnPaymentEvent\(…, \{ name: '…' \}\)/,
    );
  });

  it.each(['', 'n'.repeat(201), 'a\nb', 'a\0'])('refuses the name %j', (name) => {
    expect(() => registry([name, 'x'])).toThrow(/1 to 200 characters/);
  });

  it('takes a name of 200 characters of any script', () => {
    expect(registry(['ü'.repeat(200), 'x']).names()).toHaveLength(1);
  });

  it('IN-37 makes a default name of the sorted event types and the method', () => {
    expect(defaultName(['transaction.completed'], 'markPaid')).toBe(
      'transaction.completed#markPaid',
    );
    expect(defaultName(['b.*', 'a', '*'], 'handle')).toBe('*|a|b.*#handle');
  });

  it('IN-37 refuses a default name over 200 characters, and asks for a name', () => {
    const types = Array.from({ length: 20 }, (_, index) => `transaction.kind-${index}`);
    expect(() => registry([defaultName(types, 'handle'), ...types])).toThrow(
      /Class\..*1 to 200 characters.*default name is made of the event types.*\{ name: '…' \}/,
    );
  });
});
