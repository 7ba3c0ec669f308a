import { describe, expect, it } from '@jest/globals';
import { SigningKey } from '../companies/company.js';
import { verifySignature } from '../webhook/signature.js';
import { paymentEvent } from './payment-event-builder.js';
import { signedRequest } from './signed-request.js';

describe('signedRequest()', () => {
  it('AP-12 signs the bytes of the event, and gives them as text too', () => {
    const event = paymentEvent('transaction.completed', { accountReference: 'Ω' });
    const { method, path, headers, body, text } = signedRequest(event, { secret: 'whsec_1' });
    expect([method, path]).toEqual(['POST', '/webhooks/payments']);
    expect(JSON.parse(text)).toEqual(event);
    expect(body).toEqual(Buffer.from(text));
    expect(headers['X-Webhook-Event']).toBe('transaction.completed');
    expect(() => verifySignature(body, headers['X-Webhook-Signature'], ['whsec_1'])).not.toThrow();
  });

  it('AP-12 signs text and bytes as they are, for any path', () => {
    const key = new SigningKey('whsec_1');
    const bytes = Buffer.from([0xff, 0x7b]);
    const raw = signedRequest(bytes, { secret: key, path: '/in' });
    expect(raw).toMatchObject({ path: '/in', body: bytes });
    expect(raw.headers['X-Webhook-Event']).toBe('unknown');
    expect(() => verifySignature(bytes, raw.headers['X-Webhook-Signature'], [key])).not.toThrow();
    expect(signedRequest('{"eventType":"a.b"}', { secret: 's' }).headers).toMatchObject({
      'X-Webhook-Event': 'a.b',
    });
  });

  it('AP-12 refuses to sign without a secret', () => {
    expect(() => signedRequest('{}', { secret: '' })).toThrow(TypeError);
  });
});
