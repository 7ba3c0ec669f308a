import { deepStrictEqual } from 'node:assert/strict';
import { describe, expect, it } from '@jest/globals';
import * as fc from 'fast-check';
import { codeOf } from '../../../../test/support/errors/thrown-error.js';
import { holds } from '../../../../test/support/properties/property-check.js';
import { parseEnvelope } from './payment-event.js';

const key = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'toJSON', ''),
);
/** Generates JSON text, because values cannot have repeated keys, escaped keys or numbers out of range. */
const { json, object } = fc.letrec<{ json: string; object: string }>((tie) => ({
  json: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text)),
    fc.constantFrom('null', 'true', '0', '-0', '1e400', '-1e400', '1e-400', '9007199254740993'),
    fc.constantFrom('"\\ud800"', '"\\u0000"', '"\ufeff"', '[]', '{}'),
    fc.double({ noNaN: true, noDefaultInfinity: true }).map((number) => JSON.stringify(number)),
    fc.array(tie('json')).map((items) => `[${items.join(',')}]`),
    tie('object'),
  ),
  object: fc.array(fc.tuple(key, tie('json'))).map(objectText),
}));
const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 255 });
const valid = fc
  .tuple(
    name.filter((text) => !/\p{Cc}/u.test(text)),
    name.filter((text) => !/\p{Cc}/u.test(text)),
    fc.date({ noInvalidDate: true, min: new Date(0), max: new Date('9999-12-31') }),
    object,
    fc.option(object, { nil: 'null' }),
  )
  .map(([id, eventType, date, data, metadata]) => {
    const head = { id, eventType, timestamp: date.toISOString() };
    return `${JSON.stringify(head).slice(0, -1)},"data":${data},"metadata":${metadata}}`;
  });
/** A valid envelope of which one byte is replaced with 0 to 4 bytes. */
const damaged = fc
  .tuple(valid, fc.double({ min: 0, max: 1, noNaN: true }), fc.uint8Array({ maxLength: 4 }))
  .map(([text, position, bytes]) => {
    const body = Buffer.from(text);
    const at = Math.floor(position * body.length);
    return Buffer.concat([body.subarray(0, at), bytes, body.subarray(at + 1)]);
  });
const anyBytes = fc.oneof(
  fc.uint8Array(),
  fc.oneof(json, object, valid).map((text) => Buffer.from(text)),
  damaged,
);

function objectText(entries: readonly (readonly [string, string])[]): string {
  return `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;
}

/** A JSON.parse reviver that removes `__proto__` keys. The parser uses another method. */
function withoutProto(_: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).filter(([name]) => name !== '__proto__'));
}

describe('parseEnvelope', () => {
  it('parseEnvelope() returns an event or throws payload_invalid for any bytes', () => {
    holds(
      fc.property(anyBytes, (bytes) => {
        let event;
        try {
          event = parseEnvelope(bytes);
        } catch (error) {
          expect(error).toHaveProperty('code', 'payload_invalid');
          return;
        }
        expect(event.id).toMatch(/^[^\p{Cc}]{1,255}$/u);
        expect(event.eventType).toMatch(/^[^\p{Cc}]{1,255}$/u);
        expect(Date.parse(event.timestamp)).not.toBeNaN();
        for (const part of [event, event.data, event.metadata]) {
          expect(Object.getPrototypeOf(part)).toBe(Object.prototype);
        }
      }),
    );
  });

  it('parseEnvelope() returns the same as JSON.parse for every valid envelope, except for __proto__ keys', () => {
    holds(
      fc.property(valid, (text) => {
        const { id, eventType, timestamp, data, metadata } = JSON.parse(text, withoutProto);
        const wanted = { id, eventType, timestamp, data, metadata: metadata ?? {} };
        // Faster than toEqual() for large bodies.
        deepStrictEqual(parseEnvelope(Buffer.from(text)), wanted);
      }),
    );
  });

  it('parseEnvelope() does not change Object.prototype', () => {
    const before = Object.getOwnPropertyNames(Object.prototype);
    holds(
      fc.property(valid, (text) => {
        parseEnvelope(Buffer.from(text));
        expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
      }),
    );
  });

  it('parseEnvelope() returns or throws payload_invalid for a body nested 120,000 levels deep', () => {
    const brackets = fc.constantFrom(['[', ']'], ['{"a":', '}'], ['[{"__proto__":', '}]']);
    const depth = fc.oneof(fc.nat(100), fc.nat(20_000), fc.integer({ min: 100_000, max: 120_000 }));
    holds(
      fc.property(depth, brackets, (levels, [open, close]) => {
        const data = `{"a":${open.repeat(levels)}1${close.repeat(levels)}}`;
        const text = `{"id":"e","eventType":"t","timestamp":"2026-11-20T10:00:00Z","data":${data}}`;
        const code = codeOf(() => parseEnvelope(Buffer.from(text)));
        if (levels <= 100) expect(code).toBeUndefined();
        else expect([undefined, 'payload_invalid']).toContain(code);
      }),
      20,
    );
  });
});
