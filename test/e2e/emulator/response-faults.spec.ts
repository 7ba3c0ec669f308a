import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { ResponseFaults, TokenFaults, Transaction } from 'payments-emulator';
import { ManualClock, PaymentsEmulator } from 'payments-emulator';
import {
  get,
  getToken,
  json,
  post,
  production,
  requestToken,
  sandbox,
} from '../../support/emulator/api-client.js';
import { until } from '../../support/time/waiting.js';

const clock = new ManualClock();
let emulator: PaymentsEmulator;
let token: string;
let transactionId: string;

beforeAll(async () => {
  emulator = await PaymentsEmulator.start({ clock, seed: 'responses' });
});
beforeEach(async () => {
  await emulator.reset();
  token = await getToken(emulator);
  ({ transactionId } = emulator.createStkPush({ amount: 5, externalReference: 'order-1' }));
});
afterAll(() => emulator.close());

const ask = () => get(`${emulator.baseUrl}/v1/transactions/${transactionId}`, token);

function statuses(calls: number): Promise<number[]> {
  return Array.from({ length: calls }).reduce<Promise<number[]>>(
    async (before) => [...(await before), (await ask()).status],
    Promise.resolve([]),
  );
}

/** Returns the code of the connection error with which a request fails. */
async function errorCodeOf(request: Promise<unknown>): Promise<unknown> {
  return request.then(
    () => 'responded',
    (error: { cause?: { code?: string } }) => error.cause?.code,
  );
}

const setApiFaults = (api: ResponseFaults) => emulator.setFaults({ api });

describe('response faults of the API', () => {
  it('the fault `unauthorized` responds with 401 the given number of times, then normally', async () => {
    setApiFaults({ unauthorized: { next: 2 } });
    expect(await statuses(3)).toEqual([401, 401, 200]);
  });

  it('the fault `error` responds with 503 by default, or with the given status', async () => {
    setApiFaults({ error: { next: 1 } });
    expect(await statuses(2)).toEqual([503, 200]);
    setApiFaults({ error: { status: 502 } });
    expect(await statuses(1)).toEqual([502]);
  });

  it('the fault `rateLimit` responds with 429 and Retry-After, in seconds or as given', async () => {
    for (const [retryAfter, header] of [
      [undefined, '1'],
      [30, '30'],
      ['Wed, 21 Oct 2026 07:28:00 GMT', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    ] as const) {
      setApiFaults({ rateLimit: { retryAfter } });
      const response = await ask();
      expect([response.status, response.headers.get('retry-after')]).toEqual([429, header]);
    }
  });

  it('the fault `reset` resets the connection before the request takes effect', async () => {
    setApiFaults({ reset: { next: 1 } });
    const authorization = `Bearer ${token}`;
    const url = `${emulator.baseUrl}/emulator/checkout-invoices`;
    const order = { amount: 1, externalReference: 'order-2' };
    expect(await errorCodeOf(post(url, order, { authorization }))).toBe('ECONNRESET');
    expect(emulator.transactions()).toHaveLength(1);
  });

  it("the fault `reset` with `when: 'after'` resets the connection after the request took effect", async () => {
    setApiFaults({ reset: { next: 1, when: 'after' } });
    const authorization = `Bearer ${token}`;
    const url = `${emulator.baseUrl}/emulator/checkout-invoices`;
    const order = { amount: 1, externalReference: 'order-2' };
    expect(await errorCodeOf(post(url, order, { authorization }))).toBe('ECONNRESET');
    expect(emulator.transactions()).toHaveLength(2);
  });

  it('the fault `slow` delays the response', async () => {
    setApiFaults({ slow: { ms: 60_000, next: 1 } });
    let responded = false;
    const response = ask().finally(() => (responded = true));
    await until(() => clock.pending > 0);
    clock.advance(59_999);
    expect([clock.pending, responded]).toEqual([1, false]);
    clock.advance(1);
    expect((await response).status).toBe(200);
  });

  it('the fault `truncate` sends the status and half of the body, then closes the connection', async () => {
    setApiFaults({ truncate: { next: 1 } });
    const response = await ask();
    expect(response.status).toBe(200);
    expect(Number(response.headers.get('content-length'))).toBeGreaterThan(100);
    expect(await errorCodeOf(response.text())).toBe('UND_ERR_SOCKET');
    expect(await statuses(1)).toEqual([200]);
  });

  it('the fault `oversize` pads the response to the given size; the response stays valid JSON', async () => {
    setApiFaults({ oversize: { bytes: 3_000_000 } });
    const response = await ask();
    expect(response.headers.get('content-length')).toBe('3000000');
    const body = await response.text();
    expect(body).toHaveLength(3_000_000);
    expect(JSON.parse(body)).toMatchObject({ transactionId, amount: 5 });
  });

  it('the fault `oversize` with `gzip` compresses the padded response', async () => {
    setApiFaults({ oversize: { bytes: 3_000_000, encoding: 'gzip' } });
    const response = await ask();
    expect(response.headers.get('content-encoding')).toBe('gzip');
    expect(await response.text()).toHaveLength(3_000_000);
  });

  it('the fault `oversize` works after a client disconnects during the response', async () => {
    setApiFaults({ oversize: { bytes: 100_000_000, next: 1 } });
    const response = await ask();
    await response.body?.cancel();
    expect(await statuses(1)).toEqual([200]);
  });

  it('response faults apply only to calls with a token of the company, and not to controls', async () => {
    setApiFaults({ error: {} });
    const other = emulator.createCompany();
    const theirs = await getToken(emulator, { baseUrl: emulator.baseUrl, ...other });
    expect((await get(`${emulator.baseUrl}/v1/transactions/none`, theirs)).status).toBe(404);
    expect((await requestToken(sandbox(emulator))).status).toBe(200);
    expect((await get(`${emulator.baseUrl}/emulator/transactions`)).status).toBe(200);
    expect((await get(`${emulator.baseUrl}/v1/transactions/none`, 'forged')).status).toBe(401);
    expect(await statuses(1)).toEqual([503]);
  });
});

describe('response faults of the token endpoint', () => {
  const fail = (faults: TokenFaults) => emulator.setFaults({ token: faults });
  const request = () => requestToken(sandbox(emulator));

  it('the faults `error` and `reset` emulate an outage of the token endpoint', async () => {
    fail({ error: { next: 1 }, reset: { next: 1 } });
    expect(await errorCodeOf(request())).toBe('ECONNRESET');
    expect((await request()).status).toBe(503);
    expect((await request()).status).toBe(200);
  });

  it('the fault `lifetime` issues short-lived tokens with a matching expires_in', async () => {
    fail({ lifetime: { seconds: 2, next: 1 } });
    const body = await json(request());
    expect(body['expires_in']).toBe('2');
    token = body['access_token'] as unknown as string;
    expect(await statuses(1)).toEqual([200]);
    clock.advance(2_000);
    expect(await statuses(1)).toEqual([401]);
    expect((await json(request()))['expires_in']).toBe('3599');
  });

  it.each([[3599], [''], ['3599abc'], [-1], [null], [{ seconds: 1 }]])(
    'the fault `expiresIn` replaces expires_in by %j',
    async (value) => {
      fail({ expiresIn: { value } });
      expect((await json(request()))['expires_in']).toEqual(value);
    },
  );

  it('the fault `expiresIn` without a value omits expires_in', async () => {
    fail({ expiresIn: {} });
    expect(await json(request())).not.toHaveProperty('expires_in');
  });

  it('the fault `sameToken` returns the same token until it expires or is revoked', async () => {
    fail({ sameToken: {} });
    const first = await json(request());
    clock.advance(599_000);
    const second = await json(request());
    expect(second['access_token']).toBe(first['access_token']);
    expect(Number(second['expires_in'])).toBe(3000);
    emulator.revokeTokens();
    const third = await json(request());
    expect(third['access_token']).not.toBe(first['access_token']);
    clock.advance(3_599_000);
    expect((await json(request()))['access_token']).not.toBe(third['access_token']);
  });

  it('token faults apply to the company of the client id, in both environments', async () => {
    fail({ error: {} });
    const other = emulator.createCompany();
    expect((await requestToken({ baseUrl: emulator.baseUrl, ...other })).status).toBe(200);
    expect((await requestToken(production(emulator))).status).toBe(503);
  });
});

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
  it('the fault `notFound` with `forMs` hides a transaction until the transaction is `forMs` milliseconds old', async () => {
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

  it('the fault `notFound` with `next: 2` and `forMs` hides a young transaction in two lookups, and does not count lookups of older transactions', async () => {
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

  it('the fault `otherStatus` contradicts a completed transaction in the given number of lookups, and does not change the transaction', async () => {
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

  it('the fault `otherStatus` returns the given status in the lookup by id and in the lookup by reference, and does not affect declined transactions', async () => {
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

  it('the response faults of the API also apply to GET /emulator/payments with an access token', async () => {
    await using merchant = await startMerchant();
    const { emulator } = merchant;
    const token = await getToken(emulator);
    emulator.setFaults({ api: { error: { next: 1 } } });
    const url = `${emulator.baseUrl}/emulator/payments?externalReference=a`;
    expect([(await get(url, token)).status, (await get(url, token)).status]).toEqual([503, 200]);
  });
});
