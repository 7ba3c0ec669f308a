import { describe, expect, it } from '@jest/globals';
import { PaymentsError } from '../payments.errors.js';
import { HandlerRegistry } from './handler.registry.js';

function registry(...handlers: [name: string, ...patterns: string[]][]): HandlerRegistry {
  const made = new HandlerRegistry();
  for (const [name, ...patterns] of handlers) made.add({ name, patterns, invoke: async () => {} });
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

  it('refuses a name twice, and says how to mend it', () => {
    expect(() => registry(['a', 'x'], ['a', 'y'])).toThrow(PaymentsError);
    expect(() => registry(['a', 'x'], ['a', 'y'])).toThrow(/@OnPaymentEvent\(…, \{ name: '…' \}\)/);
  });

  it.each(['', 'n'.repeat(201), 'a\nb', 'a\0'])('refuses the name %j', (name) => {
    expect(() => registry([name, 'x'])).toThrow(/1 to 200 characters/);
  });

  it('takes a name of 200 characters of any script', () => {
    expect(registry(['ü'.repeat(200), 'x']).names()).toHaveLength(1);
  });
});
