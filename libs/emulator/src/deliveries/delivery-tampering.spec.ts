import { describe, expect, it } from '@jest/globals';
import { signDelivery } from './delivery-request.js';
import { tamperBody, tamperSignature } from './delivery-tampering.js';

const paid = Buffer.from(JSON.stringify({ id: 'a0', data: { amount: 5 } }));
const test = Buffer.from(JSON.stringify({ id: 'a0', data: {} }));
const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('utf8');

describe('tamperBody', () => {
  it('tamperBody() with "value" changes the amount, or the id if there is no amount, and the body stays valid JSON', () => {
    expect(JSON.parse(text(tamperBody(paid, 'value')))).toEqual({ id: 'a0', data: { amount: 6 } });
    expect(JSON.parse(text(tamperBody(test, 'value')))).toEqual({ id: 'a1', data: {} });
  });

  it('tamperBody() with "respace" changes only white space', () => {
    const respaced = text(tamperBody(paid, 'respace'));
    expect(respaced).not.toBe(text(paid));
    expect(JSON.parse(respaced)).toEqual(JSON.parse(text(paid)));
  });

  it('tamperBody() with "truncate" returns the first half of the body', () => {
    expect(text(paid)).toContain(text(tamperBody(paid, 'truncate')));
    expect(tamperBody(paid, 'truncate').length).toBe(Math.floor(paid.length / 2));
  });

  it('tamperBody() does not change the original body', () => {
    const before = text(paid);
    for (const how of ['value', 'respace', 'truncate'] as const) tamperBody(paid, how);
    expect(text(paid)).toBe(before);
  });
});

describe('tamperSignature', () => {
  const signature = signDelivery(paid, 'secret');

  it('tamperSignature() with "digit" changes one digit, and the signature stays well-formed', () => {
    const tampered = tamperSignature(signature, 'digit');
    expect(tampered).toMatch(/^sha512=[0-9a-f]{128}$/);
    expect(tampered).not.toBe(signature);
  });

  it('tamperSignature() omits the signature, shortens it, or changes its scheme', () => {
    expect(tamperSignature(signature, 'missing')).toBeUndefined();
    expect(tamperSignature(signature, 'malformed')).toMatch(/^sha512=[0-9a-f]{126}$/);
    expect(tamperSignature(signature, 'scheme')).toMatch(/^sha256=[0-9a-f]{128}$/);
  });
});
