import { describe, expect, it } from '@jest/globals';
import { NOT_REQUESTED_CODES } from 'nestjs-payments';
import type { PaymentsApi, PaymentsErrorCode, ReconcileOptions } from 'nestjs-payments';
import { apiError, TestRuntime } from 'nestjs-payments/testing';
import { INBOX_STORE } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import type { InboxStore } from '../../../libs/payments/dist/inbox/store/inbox-store.js';
import { systemRuntime } from '../../../libs/payments/dist/runtime/payments-runtime.js';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
  RECONCILE,
} from '../../support/inbox/expecting-application.js';
import { settled } from '../../support/inbox/settled.js';
import { eventually } from '../../support/time/waiting.js';

const PATH = '/v1/invoices';
const REFERENCE = 'order-1';
const POST = { method: 'POST', path: PATH };

interface Invoice {
  readonly transactionId?: string | null;
}

/** Requests the payment `order-1` with the calls of `calls`. */
const send = (
  app: ExpectingApplication,
  calls: (api: PaymentsApi) => Promise<Invoice>,
  more: { repeatable?: boolean } = {},
) =>
  app.expectations.request({ reference: REFERENCE }, calls, {
    attach: (invoice) => invoice.transactionId,
    ...more,
  });

/** Requests the payment `order-1`. */
const request = (app: ExpectingApplication, more: { repeatable?: boolean } = {}) =>
  send(app, (api) => api.post(PATH, { body: { externalReference: REFERENCE } }), more);

const posts = ({ api }: ExpectingApplication) =>
  api.calls.filter(({ method }) => method === 'POST').length;
const storeOf = ({ app }: ExpectingApplication) => app.get<InboxStore>(INBOX_STORE);
const caught = (call: Promise<unknown>) =>
  call.then(
    () => 'no error',
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );

/** An application whose `find` returns what the test sets. */
async function startWithFind(
  data: Parameters<typeof ExpectingApplication.start>[0],
  find: NonNullable<ReconcileOptions['find']>,
) {
  return ExpectingApplication.start(data, { reconcile: { ...RECONCILE, find } });
}

/** The statuses of responses to a request that created no payment. A second call sends the request again. */
const ANSWERED: readonly (number | PaymentsErrorCode)[] = [400, 402, 403, 404, 409, 418, 422, 429];
/** After these, the payment may exist. A second call may not send the request again without `find`. */
const UNKNOWN: readonly (number | PaymentsErrorCode)[] = [
  303,
  408,
  500,
  503,
  'outcome_unknown',
  'response_invalid',
  'response_too_large',
  'options_invalid',
];

onMemoryAndSqlite((data) => {
  it('EX-15 request() stores the expectation first, sends one request, and attaches the id', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.api.respond('POST', PATH, async () => {
      expect(await app.find(1)).toMatchObject({ state: 'waiting', transactionId: null });
      return { transactionId: 't-1', checkoutUrl: 'u' };
    });
    expect(await request(app)).toEqual({
      requested: true,
      transactionId: 't-1',
      attached: true,
      response: { transactionId: 't-1', checkoutUrl: 'u' },
    });
    expect(await app.find(1)).toMatchObject({ state: 'waiting', transactionId: 't-1' });
    const again = { requested: false, transactionId: 't-1', state: 'waiting', running: false };
    expect(await request(app)).toEqual(again);
    expect(await app.webhook('t-1', REFERENCE)).toBe(200);
    await settled(app.app);
    expect(await request(app)).toEqual({ ...again, state: 'fulfilled' });
    expect(posts(app)).toBe(1);
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
  });

  it.each([...ANSWERED, ...UNKNOWN])(
    'EX-15 after %s, request() keeps the expectation, also after a second call',
    async (cause) => {
      await using app = await ExpectingApplication.start(await data());
      app.api.respond('POST', PATH, apiError(cause, { ...POST, ...statusOf(cause) }));
      expect(await caught(request(app))).not.toBe('no error');
      expect((await app.find(1)).state).toBe('waiting');
      const isUnknown = UNKNOWN.includes(cause);
      app.api.respond('POST', PATH, { transactionId: 't-1' });
      const second = await caught(request(app));
      expect(second).toBe(isUnknown ? 'outcome_unknown' : 'no error');
      expect(posts(app)).toBe(isUnknown ? 1 : 2);
      if (isUnknown) expect(await caught(request(app, { repeatable: true }))).toBe('no error');
      expect(await app.find(1)).toMatchObject({ state: 'waiting', transactionId: 't-1' });
    },
  );

  it.each([...NOT_REQUESTED_CODES])(
    'EX-15 EX-16 after %s, the expectation that the call created is cancelled, and opened again by the next call',
    async (code) => {
      await using app = await ExpectingApplication.start(await data());
      app.api.respond('POST', PATH, apiError(code, POST));
      expect(await caught(request(app))).toBe(code);
      expect(await app.find(1)).toMatchObject({ state: 'cancelled', nextPollAt: null });
      app.api.respond('POST', PATH, { transactionId: 't-1' });
      expect(await request(app)).toMatchObject({ requested: true });
      expect(await app.find(1)).toMatchObject({ state: 'waiting', transactionId: 't-1' });
    },
  );

  it('EX-15 a request() that fails does not cancel an expectation that another call created', async () => {
    await using app = await ExpectingApplication.start(await data());
    await app.expectations.expect({ reference: REFERENCE });
    app.api.respond('POST', PATH, apiError('connection_failed', POST));
    expect(await caught(request(app))).toBe('connection_failed');
    expect((await app.find(1)).state).toBe('waiting');
    app.api.respond('POST', PATH, { transactionId: 't-1' });
    expect(await request(app)).toMatchObject({ requested: true });
    app.api.respond('POST', PATH, apiError(429, POST));
    expect(await request(app)).toMatchObject({ requested: false, transactionId: 't-1' });
    expect((await app.find(1)).state).toBe('waiting');
  });

  it.each(['token_unavailable', 422] as const)(
    'EX-15 after a call that may have created the payment and a call that ends with %s, request() keeps the expectation, and its outcome is unknown',
    async (cause) => {
      await using app = await ExpectingApplication.start(await data());
      app.api.respond('POST', PATH, { transactionId: 't-1' });
      app.api.respond('POST', '/v1/notes', apiError(cause, POST));
      const two = send(app, async (api) => {
        const invoice = await api.post<Invoice>(PATH);
        await api.post('/v1/notes');
        return invoice;
      });
      expect(await caught(two)).not.toBe('no error');
      expect((await app.find(1)).state).toBe('waiting');
      expect(await caught(request(app))).toBe('outcome_unknown');
      expect(posts(app)).toBe(2);
    },
  );

  it.each([
    ['attaches the transaction that find() returns', async () => 't-1', 1, 't-1'],
    ['sends the request again if find() returns nothing', async () => null, 2, 't-2'],
  ])('EX-09 EX-15 after outcome_unknown, request() %s', async (_, find, count, transactionId) => {
    await using app = await startWithFind(await data(), find);
    app.api.respond('POST', PATH, apiError('outcome_unknown', POST), { transactionId: 't-2' });
    expect(await caught(request(app))).toBe('outcome_unknown');
    expect(await request(app)).toMatchObject({ transactionId });
    expect(posts(app)).toBe(count);
    expect(await app.find(1)).toMatchObject({ state: 'waiting', transactionId });
  });

  it('EX-15 request() sends nothing while find() fails, and a later call of request() calls find() again', async () => {
    let failures = 2;
    await using app = await startWithFind(await data(), async () => {
      if (failures-- > 0) throw apiError(503);
      return 't-1';
    });
    app.api.respond('POST', PATH, apiError(429, POST));
    expect(await caught(request(app))).toBe('rate_limited');
    for (let n = 0; n < 2; n += 1) expect(await caught(request(app))).toBe('server_error');
    expect(await request(app)).toMatchObject({ requested: false, transactionId: 't-1' });
    expect(posts(app)).toBe(1);
  });

  it('EX-15 a second call of request() finds the id that the response to the first call did not contain', async () => {
    let found: string | null = null;
    await using app = await startWithFind(await data(), async () => found);
    app.api.respond('POST', PATH, {});
    expect(await request(app)).toMatchObject({ requested: true, transactionId: null });
    expect(await request(app)).toMatchObject({ requested: false, transactionId: null });
    found = 't-1';
    expect(await request(app)).toMatchObject({ requested: false, transactionId: 't-1' });
    expect((await app.find(1)).transactionId).toBe('t-1');
    expect(posts(app)).toBe(1);
  });

  it.each([
    ['throws', () => Promise.reject(new RangeError('no field'))],
    ['returns an invalid id', async () => ({ transactionId: 5 as unknown as string })],
  ])('EX-15 a request is not repeated if "attach" %s', async (title, respond) => {
    await using app = await ExpectingApplication.start(await data());
    app.api.respond('POST', PATH, title === 'throws' ? {} : await respond());
    const call = app.expectations.request(
      { reference: REFERENCE },
      (api) => api.post<Invoice>(PATH),
      {
        attach: (invoice) => {
          if (title === 'throws') throw new RangeError('no field');
          return invoice.transactionId;
        },
      },
    );
    await expect(call).rejects.toThrow(title === 'throws' ? 'no field' : '"attach"');
    expect(await request(app)).toMatchObject({ requested: false });
    expect(posts(app)).toBe(1);
    expect((await app.find(1)).state).toBe('waiting');
  });

  it.each([['expect'], ['startRequest']] as const)(
    'EX-15 request() sends nothing while the store rejects the operation %s',
    async (operation) => {
      await using app = await ExpectingApplication.start(await data());
      const { expectations } = storeOf(app);
      const fail = () => Promise.reject(new Error('the store is down'));
      const original = expectations[operation] as never;
      expectations[operation] = fail;
      await expect(request(app)).rejects.toThrow('the store is down');
      expect(posts(app)).toBe(0);
      expectations[operation] = original;
      app.api.respond('POST', PATH, { transactionId: 't-1' });
      expect(await request(app)).toMatchObject({ requested: true });
    },
  );

  it('EX-15 request() attaches the id although the store fails for a moment after the request', async () => {
    await using app = await ExpectingApplication.start(await data());
    const { expectations } = storeOf(app);
    const attach = expectations.attach.bind(expectations);
    let failures = 2;
    expectations.attach = async (...call) => {
      if (failures-- > 0) throw new Error('the store is down');
      return attach(...call);
    };
    app.api.respond('POST', PATH, { transactionId: 't-1' });
    expect(await request(app)).toMatchObject({ requested: true, transactionId: 't-1' });
    expect(await app.find(1)).toMatchObject({ transactionId: 't-1' });
  });

  it('EX-16 an expectation that is cancelled during its request stays cancelled, and request() logs an error', async () => {
    await using app = await ExpectingApplication.start(await data());
    app.api.respond('POST', PATH, async () => {
      expect(await app.expectations.cancel(REFERENCE)).toBe(true);
      return { transactionId: 't-1' };
    });
    expect(await request(app)).toMatchObject({ requested: true, transactionId: 't-1' });
    expect((await app.find(1)).state).toBe('cancelled');
    expect(app.log.matching(/^error .*t-1.*cancelled.*call expect\(\)/)).toHaveLength(1);
    expect(await app.expectations.attach(REFERENCE, { transactionId: 't-1' })).toBe('cancelled');
  });
});

describe('request() after a failure', () => {
  it('EX-15 request() stops waiting for find() after 20 s, aborts the signal of find(), and sends nothing', async () => {
    const runtime = new TestRuntime();
    let signal: AbortSignal | undefined;
    const find: ReconcileOptions['find'] = (_reference, _api, options) => {
      signal = options.signal;
      return new Promise<never>(() => {});
    };
    const options = { reconcile: { ...RECONCILE, find }, runtime };
    await using app = await ExpectingApplication.start(MEMORY, options);
    app.api.respond('POST', PATH, apiError('outcome_unknown'));
    expect(await caught(request(app))).toBe('outcome_unknown');
    const second = caught(request(app));
    await runtime.advance(20_000);
    expect(await second).toBe('outcome_unknown');
    expect(signal!.aborted).toBe(true);
    expect(posts(app)).toBe(1);
  });

  it('EX-15 a request that cannot begin within 30 s is not sent, because another call may send it', async () => {
    let now = 0;
    const runtime = { ...systemRuntime, monotonic: () => performance.now() + now };
    const find: ReconcileOptions['find'] = async () => {
      now += 31_000;
      return null;
    };
    const options = { reconcile: { ...RECONCILE, find }, runtime };
    await using app = await ExpectingApplication.start(MEMORY, options);
    app.api.respond('POST', PATH, apiError('outcome_unknown'));
    expect(await caught(request(app))).toBe('outcome_unknown');
    expect(await caught(request(app))).toBe('lease_lost');
    expect(posts(app)).toBe(1);
  });

  it('EX-15 after each sequence of two failures of the service, the payment is requested once and booked once', async () => {
    const failures = [
      ...[...ANSWERED, ...UNKNOWN].flatMap((cause) => [
        { cause, accepts: true },
        { cause, accepts: false },
      ]),
      ...NOT_REQUESTED_CODES.map((cause) => ({ cause, accepts: false })),
    ];
    const orders = failures.flatMap((one) => failures.map((two) => [one, two]));
    const payments = orders.map((): string[] => []);
    const find: ReconcileOptions['find'] = async (reference) => payments[Number(reference)]![0];
    const reconcile = { ...RECONCILE, find, concurrency: 100 };
    await using app = await ExpectingApplication.start(MEMORY, { reconcile });
    app.api.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
    app.api.respond('POST', PATH, async ({ body }) => {
      const { order } = body as { order: number };
      const failure = orders[order]!.shift();
      const created = payments[order]!;
      if (failure?.accepts ?? true) created.push(`t-${order}-${created.length}`);
      if (failure === undefined) return { transactionId: created.at(-1) };
      throw apiError(failure.cause, { ...POST, ...statusOf(failure.cause) });
    });
    const place = (order: number) =>
      app.expectations.request(
        { reference: String(order) },
        (api) => api.post<Invoice>(PATH, { body: { order } }),
        { attach: ({ transactionId }) => transactionId },
      );
    for (const order of orders.keys()) {
      for (let click = 1; click <= 2; click += 1) {
        await caught(place(order));
        const { state } = (await app.expectations.get(String(order)))!;
        if (payments[order]!.length > 0) expect([order, state]).toEqual([order, 'waiting']);
      }
      orders[order]!.length = 0;
      expect(await place(order)).toMatchObject({ transactionId: `t-${order}-0` });
    }
    expect(payments).toEqual(orders.map((_, order) => [`t-${order}-0`]));
    await app.expectations.askNow(
      [...orders.keys()].map((order) => ({ reference: String(order) })),
    );
    // At most 1000 polls run per second.
    await eventually(() => expect(app.books.booked.length).toBeGreaterThanOrEqual(orders.length));
    await settled(app.app);
    const booked = payments.map(([id]) => `transaction.completed ${id} poll`);
    expect(app.books.booked.toSorted()).toEqual(booked.toSorted());
  }, 120_000);

  it('EX-15 if an error proves that a second request had no effect, the payment of the first request is still found', async () => {
    let found: string | null = null;
    await using app = await startWithFind(MEMORY, async () => found);
    app.api.respond('POST', PATH, apiError('outcome_unknown'), apiError('connection_failed'));
    expect(await caught(request(app))).toBe('outcome_unknown');
    expect(await caught(request(app))).toBe('connection_failed');
    found = 'late';
    expect(await request(app)).toMatchObject({ requested: false, transactionId: 'late' });
    expect(posts(app)).toBe(2);
  });

  it('EX-15 a call that created the expectation does not cancel the expectation if another call got a response meanwhile', async () => {
    await using app = await ExpectingApplication.start(MEMORY);
    const { expectations } = storeOf(app);
    const start = expectations.startRequest.bind(expectations);
    app.api.respond('POST', PATH, apiError(429), apiError('connection_failed'));
    expectations.startRequest = async (...call) => {
      expectations.startRequest = start;
      expect(await caught(request(app))).toBe('rate_limited');
      return start(...call);
    };
    expect(await caught(request(app))).toBe('connection_failed');
    expect((await app.find(1)).state).toBe('waiting');
  });

  it.each<[string, (api: PaymentsApi) => Promise<Invoice>]>([
    ['before its call', () => Promise.reject(new Error('my own'))],
    ['after its call', (api) => api.post(PATH).then(() => Promise.reject(new Error('my own')))],
    [
      'instead of the error of its call',
      (api) => api.post<Invoice>('/v1/other').catch(() => Promise.reject(new Error('my own'))),
    ],
  ])('EX-15 the expectation stays if the application throws its own error %s', async (_, calls) => {
    await using app = await ExpectingApplication.start(MEMORY);
    app.api.respond('POST', PATH, { transactionId: 't-1' });
    app.api.respond('POST', '/v1/other', apiError('timeout', POST));
    await expect(send(app, calls)).rejects.toThrow('my own');
    expect((await app.find(1)).state).toBe('waiting');
  });

  it('EX-15 the expectation is cancelled if request() made only GET calls before a POST that provably had no effect', async () => {
    await using app = await ExpectingApplication.start(MEMORY);
    app.respond(1, { status: 'complete' });
    const call = send(app, async (api) => {
      await api.getTransaction('t-1');
      await api.request('GET', '/v1/transactions/t-1');
      throw apiError('connection_failed', POST);
    });
    expect(await caught(call)).toBe('connection_failed');
    expect((await app.find(1)).state).toBe('cancelled');
  });

  it('EX-15 a request whose process died counts as running until its lease ends, and then its outcome is unknown', async () => {
    await using app = await startWithFind(MEMORY, async () => 't-1');
    await app.expectations.expect({ reference: REFERENCE });
    await storeOf(app).expectations.startRequest('default', REFERENCE, 500);
    const result = { requested: false, state: 'waiting' };
    expect(await request(app)).toEqual({ ...result, transactionId: null, running: true });
    const found = { ...result, transactionId: 't-1', running: false };
    await eventually(async () => expect(await request(app)).toEqual(found));
    expect(posts(app)).toBe(0);
  });

  it.each(['connection_failed', 'outcome_unknown'] as const)(
    'EX-15 if a call fails with %s and the store is down, request() throws the error of the call, and a second click sends no second call',
    async (code) => {
      await using app = await ExpectingApplication.start(MEMORY);
      const { expectations } = storeOf(app);
      const end = expectations.endRequest.bind(expectations);
      expectations.endRequest = () => Promise.reject(new Error('the store is down'));
      app.api.respond('POST', PATH, apiError(code, POST));
      expect(await caught(request(app))).toBe(code);
      expect((await app.find(1)).state).toBe('waiting');
      expectations.endRequest = end;
      expect(await request(app)).toMatchObject({ requested: false });
      expect(posts(app)).toBe(1);
    },
  );

  it('EX-15 a payment whose webhook request arrives before the response is booked once', async () => {
    await using app = await ExpectingApplication.start(MEMORY);
    app.respond(1, { status: 'complete' });
    app.api.respond('POST', PATH, async () => {
      expect(await app.webhook('t-1', REFERENCE)).toBe(200);
      return { transactionId: 't-1' };
    });
    expect(await request(app)).toMatchObject({ requested: true, transactionId: 't-1' });
    expect(await request(app)).toMatchObject({ requested: false, state: 'fulfilled' });
    await app.ask(1);
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
  });

  it('EX-15 an overdue payment can be requested, and is polled once more', async () => {
    await using app = await ExpectingApplication.start(MEMORY);
    app.respond(1, { status: 'complete' });
    app.api.respond('POST', PATH, { transactionId: 't-1' });
    await app.expectations.expect({ reference: REFERENCE, dueBy: new Date(Date.now() - 1000) });
    await settled(app.app);
    expect((await app.find(1)).state).toBe('overdue');
    expect(await request(app)).toMatchObject({ requested: true });
    await settled(app.app);
    expect((await app.find(1)).state).toBe('fulfilled');
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
  });

  it('EX-15 request() throws an error that names "reconcile.find" if that function returns a value that is no transaction id', async () => {
    await using app = await startWithFind(MEMORY, async () => 7 as unknown as string);
    app.api.respond('POST', PATH, apiError(503, POST));
    await caught(request(app));
    await expect(request(app)).rejects.toThrow('"reconcile.find"');
    expect(posts(app)).toBe(1);
  });

  it('EX-15 an id that cannot be attached for 10 s is logged', async () => {
    const runtime = new TestRuntime();
    await using app = await ExpectingApplication.start(MEMORY, { runtime });
    let attempts = 0;
    storeOf(app).expectations.attach = () => {
      attempts += 1;
      return Promise.reject(new Error('the store is down'));
    };
    app.api.respond('POST', PATH, { transactionId: 't-1' });
    const call = request(app);
    // The last attempt is before the end of the 10 s.
    for (let n = 0; n < 22; n += 1) await runtime.advance(500);
    expect(await call).toMatchObject({ requested: true, transactionId: 't-1', attached: false });
    expect(attempts).toBeGreaterThan(3);
    expect(app.log.matching(/^error .*t-1.*order-1.*the store is down/)).toHaveLength(1);
  });

  it('EX-15 the message of the error outcome_unknown names the fix', async () => {
    await using app = await ExpectingApplication.start(MEMORY);
    app.api.respond('POST', PATH, apiError('outcome_unknown', POST));
    await caught(request(app));
    await expect(request(app)).rejects.toThrow(/reconcile\.find.*repeatable: true.*new reference/);
  });
});

function statusOf(cause: number | PaymentsErrorCode): { status?: number } {
  if (typeof cause === 'number') return { status: cause };
  return cause.startsWith('response_') ? { status: 200 } : {};
}
