import { describe, expect, it } from '@jest/globals';
import type { PaymentsEmulator } from 'payments-emulator';
import { get, json, post } from '../../support/emulator/api-client.js';
import { useEmulator } from '../../support/emulator/shared-emulator.js';
import type { WebhookReceiver } from '../../support/emulator/webhook-receiver.js';

const payment = { amount: 1500, externalReference: 'order-77' };
let receiver: WebhookReceiver;
let emulator: PaymentsEmulator;
let controls: string;

useEmulator((started) => ({ receiver, emulator, controls } = started));

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

  it('the transaction controls decline a transaction: it fails, sends no event and cannot be completed', async () => {
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
