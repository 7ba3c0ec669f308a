import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { LogLine } from './module-log.js';

const DELIVERY = { company: 'acme', id: 'e-1', handler: 'book', raw: Buffer.from('secret') };
const line = new LogLine('It failed.', DELIVERY);
const FIELDS = { message: 'It failed.', company: 'acme', eventId: 'e-1', handler: 'book' };

describe('LogLine', () => {
  it('LogLine has the text, company, event id and handler of a delivery as own properties, and nothing else', () => {
    const { message: msg, ...fields } = FIELDS;
    expect(Object.assign({}, line)).toEqual({ msg, ...fields });
    expect(Object.keys(new LogLine('It failed.', { company: 'acme' }))).toEqual(['msg', 'company']);
  });

  it('JSON.stringify() writes a LogLine as an object with the text and the fields', () => {
    expect(JSON.parse(JSON.stringify({ message: line }))).toEqual({ message: FIELDS });
  });

  it.each([null, 5])('util.inspect() with depth %p prints the text of a LogLine', (depth) => {
    expect(inspect(line, { depth })).toBe('It failed.');
  });

  it('util.inspect() prints the text and the fields of a LogLine that is a field of another object', () => {
    expect(inspect({ message: line }, { depth: 5 })).toBe(inspect({ message: FIELDS }));
  });

  it('LogLine supports the operators and methods of strings', () => {
    const text = line as unknown as string;
    expect(`${text}!`).toBe('It failed.!');
    expect(text + '!').toBe('It failed.!');
    expect(text.length).toBe(10);
    expect(text.includes('failed')).toBe(true);
    expect(text.replace('It', 'She').slice(0, 3)).toBe('She');
    expect(text.split(' ')).toEqual(['It', 'failed.']);
    expect(/failed/.test(text)).toBe(true);
  });
});
