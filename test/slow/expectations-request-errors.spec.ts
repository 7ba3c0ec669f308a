import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { NOT_REQUESTED_CODES, PaymentsApiService } from 'nestjs-payments';
import type { PaymentsApi, PaymentsErrorCode, PaymentsModuleOptions } from 'nestjs-payments';
import { apiError, FakePaymentsApi, TestRuntime } from 'nestjs-payments/testing';
import { INBOX_STORE } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import type { InboxStore } from '../../libs/payments/dist/inbox/store/inbox-store.js';
import { hangUp, json, ScriptedService, silence } from '../support/api/scripted-service.js';
import type { Script } from '../support/api/scripted-service.js';
import { durableSqlite, onEachDurableInbox } from '../support/inbox/durable-inboxes.js';
import { ExpectingApplication, MEMORY, RECONCILE } from '../support/inbox/expecting-application.js';
import type { ExpectingData } from '../support/inbox/expecting-application.js';
import { eventually } from '../support/time/waiting.js';
import { settled } from '../support/inbox/settled.js';

interface Invoice {
  readonly transactionId: string;
}

const storeOf = ({ app }: ExpectingApplication) => app.get<InboxStore>(INBOX_STORE);

/** The result of a call: whether it requested the payment, or the code of its error. */
const outcomeOf = (call: Promise<{ requested: boolean }>): Promise<string> =>
  call.then(
    ({ requested }) => (requested ? 'requested' : 'requested before'),
    (error: unknown) => (error as { code?: string }).code ?? String(error),
  );

// A failure of the payments service.

interface Failure {
  readonly name: string;
  readonly code: PaymentsErrorCode;
  /** Whether the error proves that there is no payment. */
  readonly proves?: true;
  /** Responds to the request for the payment. */
  readonly respond?: Script;
  /** Responds to the token request. */
  readonly token?: Script;
}

const brokenZip: Script = (_, response) => {
  response.writeHead(201, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
  response.end('not compressed');
};
const interrupted: Script = (_, response) => {
  response.writeHead(201, { 'content-length': '100' });
  response.write('{"transactionId":', () => response.socket?.destroy());
};
const respondWith = (status: number, code: PaymentsErrorCode): Failure => ({
  name: String(status),
  code,
  respond: json(status, { message: 'no' }, status === 303 ? { location: '/other' } : {}),
});

const FAILURES: readonly Failure[] = [
  respondWith(303, 'redirect_not_followed'),
  respondWith(400, 'validation_failed'),
  respondWith(403, 'permission_denied'),
  respondWith(404, 'not_found'),
  respondWith(408, 'unexpected_status'),
  respondWith(409, 'conflict'),
  respondWith(422, 'validation_failed'),
  respondWith(429, 'rate_limited'),
  respondWith(500, 'server_error'),
  respondWith(503, 'server_error'),
  { name: 'a closed connection', code: 'outcome_unknown', respond: hangUp },
  { name: 'an interrupted response', code: 'outcome_unknown', respond: interrupted },
  { name: 'no response', code: 'outcome_unknown', respond: silence },
  { name: 'a broken body', code: 'response_invalid', respond: brokenZip },
  {
    name: 'a large body',
    code: 'response_too_large',
    respond: json(201, { text: 'x'.repeat(2000) }),
  },
];
const PROOFS: readonly Failure[] = [
  { ...respondWith(401, 'authentication_failed'), proves: true },
  { name: 'no token', code: 'token_unavailable', proves: true, token: json(503, {}) },
  {
    name: 'wrong credentials',
    code: 'invalid_credentials',
    proves: true,
    token: json(401, {}),
  },
  { name: 'no response to the token request', code: 'timeout', proves: true, token: silence },
];

/** A case of the test. Each case has its own company, and therefore its own token. */
interface Case extends Failure {
  readonly company: string;
  /** Whether the service creates the payment although the request fails. */
  readonly accepts: boolean;
}

const CASES: readonly Case[] = [
  ...[true, false].flatMap((accepts) => FAILURES.map((failure) => ({ ...failure, accepts }))),
  ...PROOFS.map((failure) => ({ ...failure, accepts: false })),
].map((failure, n) => ({ ...failure, company: `company-${n}` }));

/** The payments service, with the path of each company in its paths. */
class Service {
  /** The transactions of each company. All are complete. */
  readonly payments = new Map<string, string[]>();
  /** The failures of the next requests, by company. */
  readonly failing = new Map<string, Case>();

  constructor(readonly server: ScriptedService) {
    server.onToken = (request, response) => {
      const [, credentials = ''] = request.headers.authorization?.split(' ') ?? [];
      const [client = ''] = Buffer.from(credentials, 'base64').toString().split(':');
      const { token } = this.failing.get(client) ?? {};
      (token ?? json(200, server.tokenAnswer()))(request, response);
    };
    server.onCall = (request, response) => {
      const [company, what] = new URL(request.path, 'http://s').pathname.split('/').slice(2);
      const payments = this.payments.get(company!) ?? [];
      if (company === 'transactions') return json(200, { status: 'complete' })(request, response);
      if (what === 'payments') return json(200, { payments })(request, response);
      const failure = this.failing.get(company!);
      if (failure === undefined || failure.accepts) {
        payments.push(`${company}-${payments.length}`);
        this.payments.set(company!, payments);
      }
      const transactionId = payments.at(-1);
      return (failure?.respond ?? json(201, { transactionId }))(request, response);
    };
  }

  posts(company: string): number {
    return this.server.calls.filter(({ path }) => path === `/v1/${company}/invoices`).length;
  }
}

const find = async (_: string, api: PaymentsApi) => {
  const { payments } = await api.get<{ payments: string[] }>(`/v1/${api.company}/payments`);
  return payments[0];
};

let server: ScriptedService;
let service: Service;
beforeEach(async () => {
  server = await ScriptedService.start();
  service = new Service(server);
});
afterEach(() => server.stop());

/** An application that calls the service over HTTP. */
const withService = (data: ExpectingData) =>
  ExpectingApplication.start(
    data,
    {
      baseUrl: server.baseUrl,
      companies: CASES.map(({ company }) => ({
        id: company,
        clientId: company,
        clientSecret: 'secret',
        webhookSecret: `whsec_of_the_${company}`,
      })),
      api: { deadlineMs: 60_000, maxResponseBytes: 1024, retry: { attempts: 1 } },
      reconcile: { ...RECONCILE, find },
    },
    null,
  );

const requestOf = (app: ExpectingApplication, company: string, deadlineMs = 60_000) =>
  app.expectations.request(
    { reference: 'order', company },
    (api) => api.post<Invoice>(`/v1/${company}/invoices`, { body: {}, deadlineMs }),
    { attach: ({ transactionId }) => transactionId },
  );

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('EX-15 after each failure of the service, the payment is requested once and booked once, and its expectation is cancelled only if there is no payment', async () => {
    const shared = await durable.data();
    await using first = await withService(shared);
    // Another process with its own tokens, because a process whose token request failed waits longer than this test
    // takes.
    await using second = await withService(shared);
    const rows = CASES.map(async (failure) => {
      const { name, company, accepts, respond, token } = failure;
      service.failing.set(company, failure);
      // Long enough for a busy machine to send the request.
      const deadlineMs = [respond, token].includes(silence) ? 6000 : undefined;
      const code = await outcomeOf(requestOf(first, company, deadlineMs));
      const state = (await first.expectations.get('order', { company }))?.state;
      service.failing.delete(company);
      const again = await outcomeOf(requestOf(second, company));
      const { length: payments } = service.payments.get(company) ?? [];
      return { name, accepts, code, state, again, payments, posts: service.posts(company) };
    });
    const expected = CASES.map(({ name, accepts, code, proves, token }) => ({
      name,
      accepts,
      code,
      state: proves ? 'cancelled' : 'waiting',
      again: accepts ? 'requested before' : 'requested',
      payments: 1,
      // A 401 is repeated with a new token.
      posts: accepts || token !== undefined ? 1 : proves ? 3 : 2,
    }));
    expect(await Promise.all(rows)).toEqual(expected);
    const booked = CASES.map(({ company }) => `transaction.completed ${company}-0 poll`);
    await eventually(async () => {
      const { expectations } = await second.expectations.list({ state: 'waiting' });
      // The first process has no token for some companies, so polls may fail.
      await second.expectations.askNow(expectations);
      await settled(second.app);
      const all = [...first.books.booked, ...second.books.booked];
      expect(all.toSorted()).toEqual(booked.toSorted());
    });
  }, 120_000);

  it('EX-15 a refused connection proves that there is no payment', async () => {
    await using app = await withService(await durable.data());
    const [{ company }] = CASES as [Case];
    await app.app.get(PaymentsApiService).forCompany(company).get(`/v1/${company}/payments`);
    const { port } = server;
    await server.stop();
    expect(await outcomeOf(requestOf(app, company))).toBe('connection_failed');
    expect((await app.expectations.get('order', { company }))!.state).toBe('cancelled');
    server = await ScriptedService.start(port);
    service = new Service(server);
    expect(await outcomeOf(requestOf(app, company))).toBe('requested');
  });
});

// The service below is a fake, so that many sequences of errors can be tested.

const PATH = '/v1/invoices';
const POST = { method: 'POST', path: PATH };

/** An error of a request, and whether the service creates the payment nevertheless. */
interface Step {
  readonly error: Error;
  readonly accepts: boolean;
}

const MAY_EXIST = [
  ...[303, 400, 403, 404, 408, 409, 422, 429, 500, 503].map((status) => ({
    ...POST,
    status,
    cause: status === 303 ? ('redirect_not_followed' as const) : status,
  })),
  ...(['outcome_unknown', 'response_invalid', 'response_too_large'] as const).map((cause) => ({
    ...POST,
    cause,
  })),
].map(({ cause, ...facts }) => apiError(cause, facts));

const STEPS: readonly Step[] = [
  ...MAY_EXIST.flatMap((error) => [true, false].map((accepts) => ({ error, accepts }))),
  ...NOT_REQUESTED_CODES.map((code) => ({ error: apiError(code, POST), accepts: false })),
];

/** A service whose requests fail by `steps`, and then succeed. */
class FakeService {
  readonly api = new FakePaymentsApi();
  readonly steps = new Map<string, Step[]>();
  readonly payments = new Map<string, string[]>();
  /** How often `find` was called. */
  finds = 0;

  constructor() {
    this.api.respond('POST', PATH, async ({ body }) => {
      const { reference } = body as { reference: string };
      const step = this.steps.get(reference)?.shift();
      const payments = this.payments.get(reference) ?? [];
      this.payments.set(reference, payments);
      if (step === undefined || step.accepts) payments.push(`${reference}/${payments.length}`);
      if (step !== undefined) throw step.error;
      return { transactionId: payments.at(-1) };
    });
    this.api.respond('GET', '/v1/transactions/{id}', { status: 'complete' });
  }

  readonly find = async (reference: string): Promise<string | null> => {
    this.finds += 1;
    return this.payments.get(reference)?.[0] ?? null;
  };

  start(data: ExpectingData, more: Partial<PaymentsModuleOptions> = {}) {
    const reconcile = { ...RECONCILE, find: this.find, concurrency: 100 };
    return ExpectingApplication.start(data, { reconcile, ...more }, this.api);
  }

  posts(): number {
    return this.api.calls.filter(({ method }) => method === 'POST').length;
  }
}

const request = (app: ExpectingApplication, reference: string, repeatable = false) =>
  app.expectations.request(
    { reference },
    (api) => api.post<Invoice>(PATH, { body: { reference } }),
    { attach: ({ transactionId }) => transactionId, repeatable },
  );
const stateOf = async (app: ExpectingApplication, reference: string) =>
  (await app.expectations.get(reference))!.state;

describe('on memory', () => {
  it('EX-15 after each sequence of two failures, the payment is requested once and booked once', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const pairs = STEPS.flatMap((one) => STEPS.map((two) => [one, two] as const));
    const references = pairs.map((_, n) => `order-${n}`);
    const problems: string[] = [];
    const place = async (pair: readonly [Step, Step], n: number): Promise<void> => {
      const reference = references[n]!;
      service.steps.set(reference, [...pair]);
      for (const _ of pair) {
        await outcomeOf(request(app, reference));
        const exists = (service.payments.get(reference) ?? []).length > 0;
        if (exists && (await stateOf(app, reference)) !== 'waiting')
          problems.push(`${reference} is not expected`);
      }
      service.steps.delete(reference);
      await request(app, reference);
      const { transactionId } = (await app.expectations.get(reference))!;
      if (transactionId !== `${reference}/0`) problems.push(`${reference}: ${transactionId}`);
      const { length } = service.payments.get(reference)!;
      if (length !== 1) problems.push(`${reference} was requested ${length} times`);
    };
    for (let n = 0; n < pairs.length; n += 100)
      await Promise.all(pairs.slice(n, n + 100).map((pair, i) => place(pair, n + i)));
    expect(problems).toEqual([]);
    await app.expectations.askNow(references.map((reference) => ({ reference })));
    await eventually(async () => {
      expect(app.books.booked.length).toBeGreaterThanOrEqual(references.length);
    }, 60_000);
    await settled(app.app);
    const booked = references.map((reference) => `transaction.completed ${reference}/0 poll`);
    expect(app.books.booked.toSorted()).toEqual(booked.toSorted());
  }, 120_000);

  it('EX-15 if an error proves that a second request had no effect, the payment of the first request is still found', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    // The service lists the payment of the first request late.
    service.steps.set('order', [
      { error: apiError('outcome_unknown', POST), accepts: false },
      { error: apiError('connection_failed', POST), accepts: false },
    ]);
    expect(await outcomeOf(request(app, 'order'))).toBe('outcome_unknown');
    expect(await outcomeOf(request(app, 'order'))).toBe('connection_failed');
    service.payments.set('order', ['late']);
    expect(await outcomeOf(request(app, 'order'))).toBe('requested before');
    expect(service.payments.get('order')).toEqual(['late']);
    expect(await app.expectations.get('order')).toMatchObject({ transactionId: 'late' });
  });

  it('EX-15 a call that created the expectation does not cancel the expectation if another call got a response meanwhile', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const { expectations } = storeOf(app);
    const start = expectations.startRequest.bind(expectations);
    service.steps.set('order', [
      { error: apiError(429, POST), accepts: false },
      { error: apiError('connection_failed', POST), accepts: false },
    ]);
    expectations.startRequest = async (...call) => {
      expectations.startRequest = start;
      expect(await outcomeOf(request(app, 'order'))).toBe('rate_limited');
      return start(...call);
    };
    expect(await outcomeOf(request(app, 'order'))).toBe('connection_failed');
    expect(await stateOf(app, 'order')).toBe('waiting');
  });

  it('EX-15 the outcome of request() is unknown if one of its two calls succeeded and the service rejected the other call', async () => {
    const service = new FakeService();
    const reconcile = { ...RECONCILE };
    await using app = await service.start(MEMORY, { reconcile });
    service.api.respond('POST', '/v1/notes', apiError(422, POST));
    const two = app.expectations.request(
      { reference: 'order' },
      async (api) => {
        const invoice = await api.post<Invoice>(PATH, { body: { reference: 'order' } });
        await api.request('POST', '/v1/notes');
        return invoice;
      },
      { attach: ({ transactionId }) => transactionId },
    );
    expect(await outcomeOf(two)).toBe('validation_failed');
    expect(await stateOf(app, 'order')).toBe('waiting');
    expect(await outcomeOf(request(app, 'order'))).toBe('outcome_unknown');
    expect(service.payments.get('order')).toHaveLength(1);
  });

  it.each<[string, (api: PaymentsApi) => Promise<Invoice>]>([
    ['before its call', () => Promise.reject(new Error('my own'))],
    [
      'after its call',
      async (api) => {
        await api.post(PATH, { body: { reference: 'order' } });
        throw new Error('my own');
      },
    ],
    [
      'instead of the error of its call',
      (api) =>
        api.post<Invoice>('/v1/other').catch(() => {
          throw new Error('my own');
        }),
    ],
  ])('EX-15 the expectation stays if the application throws its own error %s', async (_, send) => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    service.api.respond('POST', '/v1/other', apiError('timeout', POST));
    const call = app.expectations.request({ reference: 'order' }, send, {
      attach: ({ transactionId }) => transactionId,
    });
    await expect(call).rejects.toThrow('my own');
    expect(await stateOf(app, 'order')).toBe('waiting');
    await request(app, 'order');
    expect(service.payments.get('order')).toHaveLength(1);
  });

  it('EX-15 the expectation is cancelled if request() made only GET calls before a POST that provably had no effect', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const call = app.expectations.request<Invoice>(
      { reference: 'order' },
      async (api) => {
        await api.getTransaction('t-0');
        await api.request('GET', '/v1/transactions/t-0');
        throw apiError('connection_failed', POST);
      },
      { attach: ({ transactionId }) => transactionId },
    );
    expect(await outcomeOf(call)).toBe('connection_failed');
    expect(await stateOf(app, 'order')).toBe('cancelled');
  });

  it('EX-15 a request whose process died counts as running until its lease ends, and then its outcome is unknown', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const { expectations } = storeOf(app);
    for (const [reference, leaseMs] of [
      ['old', 1],
      ['new', 60_000],
    ] as const) {
      await app.expectations.expect({ reference });
      await expectations.startRequest('default', reference, leaseMs);
      service.payments.set(reference, [`${reference}/0`]);
    }
    const under = { requested: false, transactionId: null, state: 'waiting', running: true };
    expect(await request(app, 'new')).toEqual(under);
    expect(service.finds).toBe(0);
    const found = { requested: false, transactionId: 'old/0', state: 'waiting', running: false };
    await eventually(async () => expect(await request(app, 'old')).toEqual(found));
    expect(service.posts()).toBe(0);
  });

  it('EX-15 if the store is down, request() throws the error of the service, and no second request is sent until the first lease ends', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const { expectations } = storeOf(app);
    const end = expectations.endRequest.bind(expectations);
    expectations.endRequest = () => Promise.reject(new Error('the store is down'));
    for (const [code, reference] of [
      ['connection_failed', 'one'],
      ['outcome_unknown', 'two'],
    ] as const) {
      service.steps.set(reference, [{ error: apiError(code, POST), accepts: false }]);
      expect(await outcomeOf(request(app, reference))).toBe(code);
      expect(await stateOf(app, reference)).toBe('waiting');
    }
    expectations.endRequest = end;
    for (const reference of ['one', 'two'])
      expect(await outcomeOf(request(app, reference))).toBe('requested before');
    expect(service.posts()).toBe(2);
  });

  it('EX-15 a payment whose response has no id is not requested again, and a poll finds it, even if the store was down meanwhile', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const { expectations } = storeOf(app);
    const without = () =>
      app.expectations.request(
        { reference: 'order' },
        (api) => api.post<Invoice>(PATH, { body: { reference: 'order' } }),
        { attach: () => undefined },
      );
    expectations.endRequest = () => Promise.reject(new Error('the store is down'));
    expect(await without()).toMatchObject({ requested: true, transactionId: null });
    expect(await without()).toMatchObject({ requested: false, transactionId: null });
    await app.expectations.askNow({ reference: 'order' });
    await settled(app.app);
    expect(app.books.booked).toEqual(['transaction.completed order/0 poll']);
    expect(await without()).toMatchObject({ requested: false, state: 'fulfilled' });
    expect(service.posts()).toBe(1);
  });

  it('EX-15 a payment whose webhook request arrives before the response is booked once', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    service.api.respond('POST', PATH, async () => {
      expect(await app.webhook('t-1', 'order')).toBe(200);
      return { transactionId: 't-1' };
    });
    expect(await request(app, 'order')).toMatchObject({ requested: true, transactionId: 't-1' });
    expect(await request(app, 'order')).toMatchObject({ requested: false, state: 'fulfilled' });
    await app.expectations.askNow({ reference: 'order' });
    await settled(app.app);
    expect(app.books.booked).toEqual(['transaction.completed t-1 webhook']);
  });

  it('EX-15 EX-16 a payment that the application cancels during its request can be requested again', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    service.steps.set('order', [{ error: apiError(503, POST), accepts: false }]);
    const call = app.expectations.request(
      { reference: 'order' },
      async (api) => {
        await app.expectations.cancel('order');
        return api.post<Invoice>(PATH, { body: { reference: 'order' } });
      },
      { attach: ({ transactionId }) => transactionId },
    );
    expect(await outcomeOf(call)).toBe('server_error');
    expect(await stateOf(app, 'order')).toBe('cancelled');
    expect(await outcomeOf(request(app, 'order'))).toBe('requested');
    expect(await app.expectations.get('order')).toMatchObject({
      state: 'waiting',
      transactionId: 'order/0',
    });
  });

  it('EX-15 an overdue payment can be requested, and is polled once more', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY);
    const dueBy = new Date(Date.now() - 1000);
    await app.expectations.expect({ reference: 'order', dueBy });
    await settled(app.app);
    expect(await stateOf(app, 'order')).toBe('overdue');
    expect(await outcomeOf(request(app, 'order'))).toBe('requested');
    await settled(app.app);
    expect(await stateOf(app, 'order')).toBe('fulfilled');
    expect(app.books.booked).toEqual(['transaction.completed order/0 poll']);
  });

  it('EX-15 request() throws an error that names "reconcile.find" or "attach" if that function returns a value that is no transaction id', async () => {
    const service = new FakeService();
    await using app = await service.start(MEMORY, {
      reconcile: { ...RECONCILE, find: async () => 7 as unknown as string },
    });
    service.steps.set('order', [{ error: apiError(503, POST), accepts: false }]);
    await outcomeOf(request(app, 'order'));
    await expect(request(app, 'order')).rejects.toThrow('"reconcile.find"');
    const wrong = app.expectations.request({ reference: 'other' }, async () => 7, {
      attach: (id) => id as unknown as string,
    });
    await expect(wrong).rejects.toThrow('"attach"');
    expect(service.posts()).toBe(1);
  });
});

onEachDurableInbox((durable) => {
  it('EX-15 a second click in another process sends no request if the first request is running, has succeeded, or has an unknown outcome', async () => {
    const service = new FakeService();
    const shared = await durable.data();
    const { find: _, ...reconcile } = { ...RECONCILE, find: service.find };
    await using one = await service.start(shared, { reconcile });
    await using other = await service.start(shared, { reconcile });
    const [called, responded] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = one.expectations.request(
      { reference: 'order' },
      async (api) => {
        called.resolve();
        await responded.promise;
        return api.post<Invoice>(PATH, { body: { reference: 'order' } });
      },
      { attach: ({ transactionId }) => transactionId },
    );
    await called.promise;
    const before = { requested: false, state: 'waiting' };
    const clicks = [request(other, 'order'), request(other, 'order', true)];
    const during = { ...before, transactionId: null, running: true };
    expect(await Promise.all(clicks)).toEqual([during, during]);
    responded.resolve();
    expect(await first).toMatchObject({ requested: true, transactionId: 'order/0' });
    expect(await request(other, 'order')).toEqual({
      ...before,
      transactionId: 'order/0',
      running: false,
    });
    service.steps.set('lost', [{ error: apiError('outcome_unknown', POST), accepts: true }]);
    expect(await outcomeOf(request(one, 'lost'))).toBe('outcome_unknown');
    expect(await outcomeOf(request(other, 'lost'))).toBe('outcome_unknown');
    expect(service.posts()).toBe(2);
  });
});

it('EX-15 an id that cannot be attached for 10 s is logged, and the payment is found later', async () => {
  const service = new FakeService();
  const runtime = new TestRuntime();
  await using app = await service.start(MEMORY, { runtime });
  const { expectations } = storeOf(app);
  const attach = expectations.attach.bind(expectations);
  let attempts = 0;
  expectations.attach = () => {
    attempts += 1;
    return Promise.reject(new Error('the store is down'));
  };
  const call = request(app, 'order');
  // The last attempt is before the end of the 10 s.
  for (let n = 0; n < 22; n += 1) await runtime.advance(500);
  expect(await call).toMatchObject({
    requested: true,
    transactionId: 'order/0',
    attached: false,
  });
  expect(attempts).toBeGreaterThan(3);
  expect(app.log.matching(/^error .*order\/0.*order.*the store is down/)).toHaveLength(1);
  expectations.attach = attach;
  expect(await request(app, 'order')).toMatchObject({
    requested: false,
    transactionId: 'order/0',
  });
  expect(service.posts()).toBe(1);
});
