import { describe, expect, it } from '@jest/globals';
import { SigningKey } from '../companies/company.js';
import { memoryInbox } from '../stores/memory/memory-store.js';
import type { PostgresTransaction } from '../stores/postgres/index.js';
import { systemRuntime } from '../runtime/payments-runtime.js';
import { verifySignature } from '../webhook/signature.js';
import { parseEnvelope } from '../events/payment-event.js';
import type { PaymentEvent, PaymentEventContext } from '../events/payment-event.js';
import { handlerContext, paymentEvent, signedRequest } from './payment-event-builders.js';

describe('paymentEvent()', () => {
  it('AP-11 paymentEvent() builds a complete event that the module parses', () => {
    const event: PaymentEvent<'transaction.completed'> = paymentEvent('transaction.completed');
    expect(parseEnvelope(Buffer.from(JSON.stringify(event)))).toEqual(event);
    expect(event.data).toEqual({
      transactionId: expect.any(String),
      status: 'complete',
      amount: 1500,
      accountReference: 'INV-1001',
      externalReference: 'order-77',
    });
    expect(Math.abs(Date.parse(event.timestamp) - Date.now())).toBeLessThan(60_000);
  });

  it('AP-11 paymentEvent() gives each event a new id and a new transaction id', () => {
    const [a, b] = [paymentEvent('transaction.completed'), paymentEvent('transaction.completed')];
    expect(a.id).not.toBe(b.id);
    expect(a.data.transactionId).not.toBe(b.data.transactionId);
  });

  it('AP-11 paymentEvent() merges data over the defaults, and sets id, timestamp and metadata as given', () => {
    const envelope = { id: 'e-1', timestamp: '2026-01-02T03:04:05.000Z', metadata: { a: 1 } };
    const event = paymentEvent('transaction.completed', { amount: 350 }, envelope);
    expect(event).toMatchObject({ ...envelope, data: { amount: 350, status: 'complete' } });
  });

  it('AP-11 paymentEvent() uses the data of any other event type as given', () => {
    expect(paymentEvent('webhook.test').data).toEqual({});
    expect(paymentEvent('payout.failed', { payoutId: 'p-1' }).data).toEqual({ payoutId: 'p-1' });
    // @ts-expect-error an amount is a number
    expect(paymentEvent('transaction.completed', { amount: '350' }).data.amount).toBe('350');
  });
});

describe('handlerContext()', () => {
  it('AP-11 handlerContext() builds the context of a first attempt by default', async () => {
    const { signal, receivedAt, commit, newerHandled, ...context } = handlerContext();
    expect(signal.aborted).toBe(false);
    expect(receivedAt).toBeInstanceOf(Date);
    expect(commit).toEqual(expect.any(Function));
    expect(await newerHandled()).toBe(false);
    expect(context).toEqual({
      company: 'default',
      handler: 'transaction.completed#handle',
      attempt: 1,
      raw: Buffer.from('{}'),
      source: 'webhook',
    });
  });

  it('AP-11 handlerContext() sets every given field of a handler context', () => {
    const newerHandled = async () => true;
    const fields = { company: 'acme', attempt: 3, signal: AbortSignal.abort(), newerHandled };
    expect(handlerContext(fields)).toMatchObject(fields);
  });

  it('AP-11 handlerContext() rejects context.commit() by default, as an inbox without transactions does', async () => {
    const lease = { company: 'default', id: 'e', handler: 'h', token: 1, seq: 1 };
    const real = memoryInbox()
      .create(systemRuntime)
      .commit(lease, () => {});
    const expected: unknown = await real.catch((error: unknown) => error);
    await expect(handlerContext().commit(() => {})).rejects.toEqual(expected);
    expect(expected).toMatchObject({ code: 'commit_unsupported' });
  });

  it('AP-11 handlerContext() uses a given commit function, with the type of its transaction', async () => {
    const queries: string[] = [];
    const tx = {
      query: (text: string) => Promise.resolve(queries.push(text)),
    } as unknown as PostgresTransaction;
    const context: PaymentEventContext<PostgresTransaction> = handlerContext<PostgresTransaction>({
      commit: async (work) => work(tx),
    });
    await context.commit((transaction) => transaction.query('INSERT'));
    expect(queries).toEqual(['INSERT']);
  });
});

describe('signedRequest()', () => {
  it('AP-12 signedRequest() signs the bytes of an event, and returns them also as text', () => {
    const event = paymentEvent('transaction.completed', { accountReference: 'Ω' });
    const { method, path, headers, body, text } = signedRequest(event, { secret: 'whsec_1' });
    expect([method, path]).toEqual(['POST', '/webhooks/payments']);
    expect(JSON.parse(text)).toEqual(event);
    expect(body).toEqual(Buffer.from(text));
    expect(headers['X-Webhook-Event']).toBe('transaction.completed');
    expect(() => verifySignature(body, headers['X-Webhook-Signature'], ['whsec_1'])).not.toThrow();
  });

  it('AP-12 signedRequest() signs text and bytes unchanged, for any path', () => {
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

  it('AP-12 signedRequest() throws a TypeError without a secret', () => {
    expect(() => signedRequest('{}', { secret: '' })).toThrow(TypeError);
  });
});
