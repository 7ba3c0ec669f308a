import { describe, expect, it } from '@jest/globals';
import { PaymentsEmulator } from 'payments-emulator';
import { get, getToken, json, post, production } from '../../support/emulator/api-client.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';

let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started));

const payment = { amount: 1500.5, accountReference: 'INV-1001', externalReference: 'order-77' };

describe('GET /v1/transactions/{id}', () => {
  it('GET /v1/transactions/{id} returns the documented fields, first with status pending and then complete', async () => {
    const { transactionId } = emulator.createCheckoutInvoice(payment);
    const token = await getToken(emulator);
    const url = `${emulator.baseUrl}/v1/transactions/${transactionId}`;
    expect(await json(get(url, token))).toEqual({ transactionId, status: 'pending', ...payment });
    emulator.complete(transactionId);
    expect(await json(get(url, token))).toEqual({ transactionId, status: 'complete', ...payment });
  });

  it('GET /v1/transactions/{id} responds with 404 for transactions of another company or environment', async () => {
    const other = emulator.createCompany();
    const ofOther = emulator.createStkPush({ ...payment, companyId: other.companyId });
    const ofProduction = emulator.createStkPush({ ...payment, environment: 'production' });
    const token = await getToken(emulator);
    const status = async (base: string, id: string, bearer: string) =>
      (await get(`${base}/v1/transactions/${id}`, bearer)).status;
    expect(await status(emulator.baseUrl, ofOther.transactionId, token)).toBe(404);
    expect(await status(emulator.baseUrl, ofProduction.transactionId, token)).toBe(404);
    expect(await status(emulator.baseUrl, 'constructor', token)).toBe(404);
    const live = await getToken(emulator, production(emulator));
    expect(await status(emulator.productionBaseUrl, ofProduction.transactionId, live)).toBe(200);
  });

  it('GET /v1/transactions/{id} responds with 401 without a valid token, whether or not the transaction exists', async () => {
    const { transactionId } = emulator.createPayout(payment);
    for (const id of [transactionId, 'none']) {
      expect((await get(`${emulator.baseUrl}/v1/transactions/${id}`)).status).toBe(401);
      expect((await get(`${emulator.baseUrl}/v1/transactions/${id}`, 'a.b.c')).status).toBe(401);
    }
  });

  it('GET /v1/transactions/{id} uses the configured response shapes and pending status', async () => {
    await using shaped = await PaymentsEmulator.start({
      pendingStatus: 'awaiting_payment',
      shapes: {
        transaction: ({ status }) => ({ data: { status } }),
        error: ({ status }) => ({ error: { code: `E${status}` } }),
      },
    });
    const { transactionId } = shaped.createStkPush(payment);
    const url = `${shaped.baseUrl}/v1/transactions/${transactionId}`;
    const token = await getToken(shaped);
    expect(await json(get(url, token))).toEqual({ data: { status: 'awaiting_payment' } });
    expect(await json(get(url))).toEqual({ error: { code: 'E401' } });
  });
});

describe('POST /v1/webhooks/test', () => {
  const test = async () => {
    const token = await getToken(emulator);
    return post(`${emulator.baseUrl}/v1/webhooks/test`, undefined, {
      'x-auth-token': `Bearer ${token}`,
    });
  };

  it('POST /v1/webhooks/test sends webhook.test to the webhook and reports the success', async () => {
    const response = await test();
    expect(response.status).toBe(200);
    expect(receiver.received).toHaveLength(1);
    expect(receiver.received[0]?.event.eventType).toBe('webhook.test');
    expect(await json(response)).toMatchObject({
      delivered: true,
      eventId: receiver.received[0]?.event.id,
      status: 200,
      error: null,
    });
  });

  it('POST /v1/webhooks/test reports a failed delivery and its reason', async () => {
    receiver.respondWith(500);
    expect(await json(test())).toMatchObject({
      delivered: false,
      status: 500,
      error: { code: 'status' },
    });
    emulator.setWebhook({ active: false });
    expect(await json(test())).toMatchObject({ delivered: false, error: { code: 'inactive' } });
    emulator.setWebhook({ active: true, url: null });
    expect(await json(test())).toMatchObject({ delivered: false, error: { code: 'no_url' } });
    expect(receiver.received).toHaveLength(1);
  });

  it('POST /v1/webhooks/test accepts a body, which the service does not document, and responds with 401 without a token', async () => {
    const token = await getToken(emulator);
    const url = `${emulator.baseUrl}/v1/webhooks/test`;
    const authorization = `Bearer ${token}`;
    expect((await post(url, {}, { authorization })).status).toBe(200);
    expect(
      (await post(url, undefined, { authorization, 'content-type': 'application/json' })).status,
    ).toBe(200);
    expect((await post(url)).status).toBe(401);
    expect(receiver.received).toHaveLength(2);
  });
});

describe('the endpoints with which a merchant creates payments', () => {
  it('the payment endpoints create a checkout invoice with a token in either header', async () => {
    const token = await getToken(emulator);
    for (const header of ['authorization', 'x-auth-token']) {
      const response = await post(`${emulator.baseUrl}/emulator/checkout-invoices`, payment, {
        [header]: `Bearer ${token}`,
      });
      expect(response.status).toBe(201);
      const body = await json(response);
      expect(body).toEqual({
        transactionId: expect.any(String),
        status: 'pending',
        checkoutUrl: `${emulator.baseUrl}/emulator/checkout/${body['transactionId']}`,
        ...payment,
      });
    }
  });

  it('the payment endpoints use the external reference if no account reference is given', async () => {
    const authorization = `Bearer ${await getToken(emulator)}`;
    for (const path of ['checkout-invoices', 'stk-pushes', 'payouts']) {
      const body = { amount: 1, externalReference: 'order-1' };
      const response = await post(`${emulator.baseUrl}/emulator/${path}`, body, { authorization });
      expect(await json(response)).toMatchObject({ ...body, accountReference: 'order-1' });
    }
    expect(emulator.transactions().map(({ kind }) => kind)).toEqual([
      'checkout-invoice',
      'stk-push',
      'payout',
    ]);
  });

  it('the payment endpoints respond with 401 without a token, before validating the body', async () => {
    const url = `${emulator.baseUrl}/emulator/checkout-invoices`;
    expect((await post(url, payment)).status).toBe(401);
    expect((await post(url, {})).status).toBe(401);
    expect(emulator.transactions()).toEqual([]);
  });

  it.each([
    [{ ...payment, amount: 0 }, 'amount must be a number above 0'],
    [{ ...payment, amount: '1500' }, 'amount must be a number above 0'],
    [{ ...payment, amount: 1e13 }, 'amount must be a number above 0'],
    [{ amount: 1 }, 'externalReference must be a string of 1 to 256 characters'],
    [{ ...payment, accountReference: 7 }, 'accountReference must be'],
    [{ ...payment, metadata: [] }, 'metadata must be a JSON object'],
    [{ ...payment, currency: 'KES' }, 'currency is not a field of this input'],
    [[], 'must be a JSON object'],
  ])('the payment endpoints reject %j with 400 and name the field', async (body, message) => {
    const authorization = `Bearer ${await getToken(emulator)}`;
    const url = `${emulator.baseUrl}/emulator/checkout-invoices`;
    const response = await post(url, body, { authorization });
    expect(response.status).toBe(400);
    expect((await json(response))['message'] as unknown as string).toContain(message);
    expect(emulator.transactions()).toEqual([]);
  });
});

describe('controls of transactions', () => {
  it('the transaction controls create and complete a transaction of each kind, and deliver its event', async () => {
    for (const kind of ['stk-push', 'checkout-invoice', 'payout']) {
      const created = await json(post(`${controls}/transactions`, { kind, ...payment }));
      expect(created).toMatchObject({ kind, status: 'pending', environment: 'sandbox' });
      expect('checkoutUrl' in created).toBe(kind === 'checkout-invoice');
      const url = `${controls}/transactions/${created['transactionId']}/complete`;
      const completed = await json(post(url));
      expect(completed['transaction']).toMatchObject({ kind, status: 'complete' });
      expect((await post(url)).status).toBe(409);
    }
    await emulator.idle();
    expect(receiver.received).toHaveLength(3);
    expect((await post(`${controls}/transactions`, { kind: 'loan', ...payment })).status).toBe(400);
  });

  it('after the transaction controls have declined a transaction, the transaction has failed, no event is sent, and the transaction cannot be completed', async () => {
    const { transactionId } = emulator.createStkPush(payment);
    const url = `${controls}/transactions/${transactionId}`;
    expect(await json(post(`${url}/fail`))).toMatchObject({ status: 'failed', transactionId });
    expect(emulator.transaction(transactionId).failedAt).toMatch(/^\d{4}-.*Z$/);
    for (const end of ['fail', 'complete']) {
      const again = await post(`${url}/${end}`);
      expect(again.status).toBe(409);
      expect((await json(again))['message']).toContain('has already failed');
    }
    await emulator.idle();
    expect(emulator.deliveries()).toEqual([]);
  });

  it('the transaction controls list and filter transactions', async () => {
    emulator.createCompany({ companyId: 'other' });
    const paid = emulator.createStkPush(payment);
    emulator.complete(paid.transactionId);
    const open = emulator.createStkPush(payment);
    const failed = emulator.createPayout({ ...payment, companyId: 'other' });
    emulator.fail(failed.transactionId);
    const found = async (query: string) => {
      const response = await get(`${controls}/transactions?${query}`);
      return ((await response.json()) as { transactionId: string }[]).map(
        (each) => each.transactionId,
      );
    };
    const ids = [paid, open, failed].map(({ transactionId }) => transactionId);
    expect(await found('')).toEqual(ids);
    expect(await found('open=true')).toEqual([open.transactionId]);
    expect(await found('open=false')).toEqual([paid.transactionId, failed.transactionId]);
    expect(await found('kind=stk-push')).toEqual(ids.slice(0, 2));
    expect(await found('companyId=other')).toEqual([failed.transactionId]);
    expect(await found('limit=1')).toEqual(ids.slice(-1));
    expect((await get(`${controls}/transactions?open=maybe`)).status).toBe(400);
  });

  it('the transaction controls normalise phone numbers, and accept only http and https return URLs', async () => {
    const given = { phoneNumber: '+1 (555) 010-0123', returnUrl: 'https://shop.example/orders/7' };
    expect(emulator.createStkPush({ ...payment, ...given })).toMatchObject({
      phoneNumber: '+15550100123',
      returnUrl: given.returnUrl,
    });
    for (const returnUrl of ['javascript:alert(1)', '/orders/7', 'https://u:p@shop.example/']) {
      expect(() => emulator.createCheckoutInvoice({ ...payment, returnUrl })).toThrow('returnUrl');
    }
    for (const phoneNumber of ['12', 'mine', '1234567890123456']) {
      expect(() => emulator.createStkPush({ ...payment, phoneNumber })).toThrow('phoneNumber');
    }
  });

  it('the transaction controls create transactions in the environment of the called host', async () => {
    const url = `${emulator.productionBaseUrl}/emulator/transactions`;
    const created = await json(post(url, { kind: 'checkout-invoice', ...payment }));
    expect(created['environment']).toBe('production');
    expect(created['checkoutUrl']).toContain(emulator.productionBaseUrl);
  });
});
