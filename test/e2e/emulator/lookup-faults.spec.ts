import { describe, expect, it } from '@jest/globals';
import type { Transaction } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import { get, getToken, json, production } from '../../support/emulator/api-client.js';

const payment = { amount: 1500, externalReference: 'order-77' };

/** Starts an emulator with a manual clock, and returns the lookups of a merchant. */
async function startMerchant() {
  const clock = new ManualClock();
  const emulator = await PaymentsEmulator.start({ clock });
  const token = await getToken(emulator);
  /** The status of the response, or the status of the transaction in it. */
  const read = async ({ transactionId }: Transaction): Promise<unknown> => {
    const response = await get(`${emulator.baseUrl}/v1/transactions/${transactionId}`, token);
    const body = await json(response);
    return response.status === 200 ? body['status'] : response.status;
  };
  const find = async (reference = payment.externalReference) => {
    const query = new URLSearchParams({ externalReference: reference });
    const found = await json(get(`${emulator.baseUrl}/emulator/payments?${query}`, token));
    return found['transactions'] as unknown as readonly Transaction[];
  };
  return { clock, emulator, read, find, [Symbol.asyncDispose]: () => emulator.close() };
}

describe('faults of transaction lookups', () => {
  it('the fault notFound with forMs hides a transaction until it is old enough', async () => {
    await using merchant = await startMerchant();
    const { clock, emulator, read, find } = merchant;
    emulator.setFaults({ api: { notFound: { forMs: 60_000 } } });
    const transaction = emulator.createStkPush(payment);
    clock.advance(59_999);
    expect([await read(transaction), await find()]).toEqual([404, []]);
    expect(emulator.transaction(transaction.transactionId).status).toBe('pending');
    clock.advance(1);
    expect([await read(transaction), (await find()).length]).toEqual(['pending', 1]);
  });

  it('the fault notFound with next hides a transaction that many times, and keeps next for older transactions', async () => {
    await using merchant = await startMerchant();
    const { clock, emulator, read } = merchant;
    const old = emulator.createStkPush(payment);
    clock.advance(10);
    emulator.setFaults({ api: { notFound: { next: 2, forMs: 10 } } });
    const recent = emulator.createStkPush(payment);
    expect([await read(old), await read(recent), await read(old)]).toEqual([
      'pending',
      404,
      'pending',
    ]);
    expect(emulator.faults()).toEqual({ api: { notFound: { next: 1, forMs: 10 } } });
    expect([await read(recent), await read(recent)]).toEqual([404, 'pending']);
  });

  it('the fault otherStatus contradicts a completed transaction that many times, without changing it', async () => {
    await using merchant = await startMerchant();
    const { emulator, read } = merchant;
    emulator.setFaults({ api: { otherStatus: { next: 2 } } });
    const transaction = emulator.createPayout(payment);
    expect(await read(transaction)).toBe('pending');
    emulator.complete(transaction.transactionId);
    expect(emulator.transaction(transaction.transactionId).status).toBe('complete');
    expect([await read(transaction), await read(transaction)]).toEqual(['failed', 'failed']);
    expect(await read(transaction)).toBe('complete');
  });

  it('the fault otherStatus returns the given status in both lookups, and does not affect declined transactions', async () => {
    await using merchant = await startMerchant();
    const { emulator, read, find } = merchant;
    emulator.setFaults({ api: { otherStatus: { status: 'reversed' } } });
    const paid = emulator.createPayout(payment);
    const declined = emulator.createPayout(payment);
    emulator.complete(paid.transactionId);
    emulator.fail(declined.transactionId);
    expect([await read(paid), await read(declined)]).toEqual(['reversed', 'failed']);
    expect((await find()).map(({ status }) => status)).toEqual(['failed', 'reversed']);
  });
});

describe('GET /emulator/payments', () => {
  it('GET /emulator/payments finds the transactions of a reference, newest first, with their documented fields', async () => {
    await using merchant = await startMerchant();
    const { emulator, find } = merchant;
    const first = emulator.createCheckoutInvoice(payment);
    const second = emulator.createStkPush({ ...payment, amount: 2 });
    emulator.createStkPush({ ...payment, externalReference: 'order-7' });
    const { transactionId } = first;
    expect(await find()).toEqual([
      expect.objectContaining({ transactionId: second.transactionId, amount: 2 }),
      { transactionId, status: 'pending', accountReference: 'order-77', ...payment },
    ]);
    expect(await find('order-8')).toEqual([]);
  });

  it('GET /emulator/payments returns at most the newest 100 transactions', async () => {
    await using merchant = await startMerchant();
    const { emulator, find } = merchant;
    for (let amount = 1; amount <= 101; amount++) emulator.createStkPush({ ...payment, amount });
    const amounts = (await find()).map(({ amount }) => amount);
    expect(amounts).toEqual(Array.from({ length: 100 }, (_, index) => 101 - index));
  });

  it('GET /emulator/payments returns only transactions of the company and environment of the access token', async () => {
    await using merchant = await startMerchant();
    const { emulator, find } = merchant;
    emulator.createCompany({ companyId: 'other' });
    emulator.createStkPush({ ...payment, companyId: 'other' });
    const live = emulator.createStkPush({ ...payment, environment: 'production' });
    expect(await find()).toEqual([]);
    const url = `${emulator.productionBaseUrl}/emulator/payments?externalReference=order-77`;
    const token = await getToken(emulator, production(emulator));
    expect(await json(get(url, token))).toEqual({
      transactions: [expect.objectContaining({ transactionId: live.transactionId })],
    });
  });

  it('GET /emulator/payments requires an access token, not the control token, and a reference', async () => {
    await using emulator = await PaymentsEmulator.start({ controlToken: 'c'.repeat(16) });
    const url = `${emulator.baseUrl}/emulator/payments`;
    const token = await getToken(emulator);
    expect((await get(`${url}?externalReference=a`, token)).status).toBe(200);
    expect((await get(`${url}?externalReference=a`)).status).toBe(401);
    expect((await get(`${url}?externalReference=a`, 'c'.repeat(16))).status).toBe(401);
    const invalid = await get(url, token);
    expect([invalid.status, (await json(invalid))['message']]).toEqual([
      400,
      expect.stringContaining('externalReference must be a string of 1 to 256 characters'),
    ]);
  });

  it('GET /emulator/payments applies the response faults of calls with an access token', async () => {
    await using merchant = await startMerchant();
    const { emulator } = merchant;
    const token = await getToken(emulator);
    emulator.setFaults({ api: { error: { next: 1 } } });
    const url = `${emulator.baseUrl}/emulator/payments?externalReference=a`;
    expect([(await get(url, token)).status, (await get(url, token)).status]).toEqual([503, 200]);
  });
});
