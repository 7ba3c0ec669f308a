import { describe, expect, it } from '@jest/globals';
import { codeOf, errorOf } from '../../../../test/support/errors/thrown-error.js';
import { PaymentsError } from '../errors/payments-error.js';
import { parseEnvelope } from './payment-event.js';

describe('parseEnvelope', () => {
  const envelope = { id: 'e-1', eventType: 't', timestamp: '2026-11-20T10:00:00.000Z', data: {} };

  it('parseEnvelope() drops __proto__ keys at every depth and keeps constructor as an ordinary key', () => {
    const body = `{"id":"e-1","eventType":"t","timestamp":"2026-11-20T10:00:00.000Z","data":{"__proto__":{"polluted":1},"a":{"__proto__":{"b":1}},"constructor":2}}`;
    const { data } = parseEnvelope(Buffer.from(body));
    expect(Object.keys(data)).toEqual(['a', 'constructor']);
    expect(Object.getPrototypeOf(data)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it('parseEnvelope() drops __proto__ keys inside arrays, and __proto__ keys that contain a unicode escape', () => {
    const body = `{"id":"e-1","eventType":"t","timestamp":"2026-11-20T10:00:00.000Z","data":{"a":[1,[{"\\u005f_proto__":{"b":1},"c":null}]]}}`;
    const { a } = parseEnvelope(Buffer.from(body)).data as { a: [number, [object]] };
    expect(Object.getOwnPropertyNames(a[1][0])).toEqual(['c']);
  });

  it.each([
    ['id', { ...envelope, id: 'x'.repeat(256) }],
    ['id', { ...envelope, id: 'nul\u0000' }],
    ['eventType', { ...envelope, eventType: undefined }],
    ['timestamp', { ...envelope, timestamp: '2026-13-40T10:00:00Z' }],
    ['data', { ...envelope, data: [] }],
  ])(
    'parseEnvelope() names the invalid field %s in the error, without its value',
    (field, body) => {
      const error = errorOf(() => parseEnvelope(Buffer.from(JSON.stringify(body))));
      expect(error).toBeInstanceOf(PaymentsError);
      expect(error?.message).toContain(`"${field}"`);
      expect(error?.message).not.toContain('xxx');
    },
  );

  it('parseEnvelope() rejects a body that is nested too deeply, without a stack overflow', () => {
    const body = `{"id":"e","eventType":"t","timestamp":"2026-11-20T10:00:00Z","data":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    expect(codeOf(() => parseEnvelope(Buffer.from(body)))).toBe('payload_invalid');
  });
});
