import { describe, expect, it } from '@jest/globals';
import { Injectable, Module, UseFilters, UseInterceptors } from '@nestjs/common';
import type { CallHandler, ExceptionFilter, NestInterceptor } from '@nestjs/common';
import { fixed, none, OnPaymentEvent, PaymentsError, UnrecoverableError } from 'nestjs-payments';
import type { ObserverInfo, PaymentsModuleOptions, PaymentsObserver } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { storedDelivery, webhookRequest } from '../../support/webhook/handler-application.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';
import { inboxOf, post, startOn, states } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import {
  ExpectingApplication,
  MEMORY,
  onMemoryAndSqlite,
} from '../../support/inbox/expecting-application.js';
import { Observed, observerOf } from '../../support/telemetry/recording-observer.js';
import { eventually } from '../../support/time/waiting.js';
import { apiError } from 'nestjs-payments/testing';
import { settled } from '../../support/inbox/settled.js';
import { catchError, throwError } from 'rxjs';
import type { Observable } from 'rxjs';

const PHONE = '254700000001';
const DATA = { transactionId: 't-1', phoneNumber: PHONE, amount: 471147114711 };

onMemoryAndSqlite((data) => {
  const start = async (
    handlers: Readonly<Record<string, Handle>>,
    payments: Partial<PaymentsModuleOptions> = {},
  ) => {
    const observed = new Observed();
    const app = await startOn(await data(), handlers, {
      observers: [observed.observer],
      ...payments,
    });
    return { app, observed };
  };

  it('TE-01 an observer gets a received event and its attempts, with ids and times', async () => {
    const { app, observed } = await start({ book: () => {} });
    await using _ = app;
    await post(app, 'e-1', DATA);
    await eventually(() => expect(observed.of('attemptEnded')).toHaveLength(1));
    const event = { company: 'default', eventId: 'e-1', source: 'webhook' };
    const attempt = { ...event, handler: 'book', attempt: 1 };
    expect(observed.of('eventReceived')).toEqual([
      {
        ...event,
        eventType: 'transaction.updated',
        transactionId: 't-1',
        occurredAtMs: expect.any(Number),
        durationMs: expect.any(Number),
        status: 'stored',
        handlers: ['book'],
      },
    ]);
    const times = { receivedAtMs: expect.any(Number), ageMs: expect.any(Number) };
    expect(observed.of('attemptStarted')).toEqual([{ ...attempt, ...times }]);
    expect(observed.of('attemptEnded')).toEqual([
      {
        ...attempt,
        ...times,
        outcome: 'done',
        durationMs: expect.any(Number),
        retryInMs: null,
        error: null,
        errorCode: null,
        stack: '',
      },
    ]);
    const { receivedAt } = (await inboxOf(app).get('e-1'))!;
    expect(observed.of('attemptStarted')[0]!['receivedAtMs']).toBe(receivedAt.getTime());
  });

  it('TE-01 eventDuplicate reports a copy, a copy with other content, and a second event of the same transaction', async () => {
    const { app, observed } = await start({ book: () => {} }, { oncePerTransaction: ['paid'] });
    await using _ = app;
    const timestamp = new Date().toISOString();
    const paid = (id: string, amount: number) =>
      app.send(
        webhookRequest({
          id,
          timestamp,
          eventType: 'paid',
          data: { transactionId: 't-1', amount },
        }),
      );
    await paid('e-1', 1);
    await paid('e-1', 1);
    await paid('e-1', 2);
    await paid('e-2', 1);
    expect(observed.of('eventReceived')).toHaveLength(1);
    expect(observed.of('eventDuplicate')).toMatchObject([
      { eventId: 'e-1', storedId: 'e-1', reason: 'copy' },
      { eventId: 'e-1', storedId: 'e-1', reason: 'conflict' },
      { eventId: 'e-2', storedId: 'e-1', reason: 'transaction' },
    ]);
  });

  it('TE-01 an observer gets failed attempts, the dead delivery and its redrive', async () => {
    let attempts = 0;
    const book = () => {
      attempts += 1;
      if (attempts <= 2) throw new PaymentsError('not_found', 'no such order');
    };
    const retry = fixed([1]);
    const { app, observed } = await start({ book }, { worker: { retry } });
    await using _ = app;
    await post(app, 'e-1', DATA);
    await eventually(() => expect(observed.of('deliveryDead')).toHaveLength(1));
    const [first, second] = observed.of(
      'attemptEnded',
    ) as unknown as ObserverInfo['attemptEnded'][];
    const failure = { error: 'PaymentsError (not_found): no such order', errorCode: 'not_found' };
    expect(first).toMatchObject({ ...failure, attempt: 1, outcome: 'failed' });
    expect(first!.retryInMs).toBeGreaterThan(0);
    expect(first!.stack).toMatch(/^\n {4}at .*telemetry\/observers/);
    expect(second).toMatchObject({ ...failure, attempt: 2, outcome: 'dead', retryInMs: null });
    expect(observed.of('deliveryDead')).toEqual([second]);
    const names = observed.calls.map(({ method }) => method);
    expect(names.indexOf('deliveryDead')).toBeGreaterThan(names.lastIndexOf('attemptEnded'));

    await inboxOf(app).redrive({ handler: 'book', dryRun: true });
    await inboxOf(app).redrive({ handler: 'book' });
    expect(observed.of('deliveriesRedriven')).toEqual([
      { company: null, handler: 'book', events: 1, deliveries: 1 },
    ]);
    await eventually(() => expect(observed.of('attemptEnded')).toHaveLength(3));
    expect(observed.of('attemptEnded')[2]).toMatchObject({ attempt: 1, outcome: 'done' });
  });

  it('TE-01 an observer gets a released attempt if the application closes', async () => {
    let started = (): void => {};
    const running = new Promise<void>((resolve) => (started = resolve));
    const book: Handle = (_event, { signal }) => {
      started();
      return new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true }),
      );
    };
    const { app, observed } = await start({ book }, { worker: { drainMs: 0 } });
    const sent = post(app, 'e-1', DATA);
    await running;
    await Promise.all([app.app.close(), sent.catch(() => {})]);
    expect(observed.of('attemptEnded')).toMatchObject([{ outcome: 'released', retryInMs: null }]);
  });

  it('TE-01 the objects that observers get are frozen and contain no payload, secret or phone number', async () => {
    const { app, observed } = await start({ book: () => Promise.reject(new Error('broken')) });
    await using _ = app;
    await post(app, 'e-1', DATA);
    await post(app, 'e-1', { ...DATA, amount: 471247124712 });
    await app.send(signedWebhook({ webhookSecret: 'whsec_another' }, { id: 'e-2', data: DATA }));
    await eventually(() => expect(observed.of('attemptEnded').length).toBeGreaterThan(0));
    for (const { info } of observed.calls) expect(Object.isFrozen(info)).toBe(true);
    const shown = JSON.stringify(observed.calls);
    for (const secret of [PHONE, '471147114711', '471247124712', 'whsec_'])
      expect(shown).not.toContain(secret);
    expect(new Set(observed.calls.map(({ method }) => method)).size).toBeGreaterThanOrEqual(5);
  });
});

describe('requestRejected', () => {
  const rejections = async (app: WebhookApplication, observed: Observed) => {
    const event = webhookRequest({ id: 'e-1' });
    const wrong = signedWebhook({ webhookSecret: 'whsec_another' }, { id: 'e-2' });
    await app.send(event, { headers: { 'X-Webhook-Signature': undefined } });
    await app.send(wrong);
    await app.send(event, { path: '/webhooks/payments/nobody' });
    await app.send(event);
    return observed.of('requestRejected');
  };

  it('TE-01 an observer gets each rejected webhook request with its code, and null for a company that does not exist', async () => {
    const observed = new Observed();
    const book = () => Promise.reject(new Error('broken'));
    await using app = await startOn(MEMORY, { book }, { observers: [observed.observer] });
    const message = (part: string) => expect.stringContaining(part);
    expect(await rejections(app, observed)).toEqual([
      {
        code: 'signature_missing',
        company: null,
        eventId: null,
        message: message('no X-Webhook-Signature header'),
      },
      {
        code: 'signature_mismatch',
        company: 'default',
        eventId: null,
        message: message('No accepted webhook secret'),
      },
      {
        code: 'company_unknown',
        company: null,
        eventId: null,
        message: message('names no company'),
      },
      {
        code: 'handlers_failed',
        company: 'default',
        eventId: 'e-1',
        message: message('1 of 1 handlers'),
      },
    ]);
  });
});

describe('classes of observers', () => {
  const seen: string[] = [];

  @Injectable()
  class Tracker {
    deliveryDead({ eventId }: ObserverInfo['deliveryDead']): void {
      seen.push(eventId);
    }
  }
  @Injectable()
  class Books {
    @OnPaymentEvent('*')
    book(): never {
      throw new Error('broken');
    }
  }
  const start = (providers: [new () => object] | []) => {
    @Module({ providers })
    class Tracking {}
    const payments = { observers: [Tracker], worker: { retry: none } };
    return WebhookApplication.start({ imports: [Tracking], providers: [Books], payments });
  };

  it('TE-01 PaymentsModule finds the provider of an observer in any module of the application', async () => {
    await using app = await start([Tracker]);
    await post(app, 'e-1');
    expect(seen).toEqual(['e-1']);
  });

  it('TE-01 the application does not start if no module provides the class of an observer', async () => {
    await expect(start([])).rejects.toMatchObject({
      code: 'options_invalid',
      message: expect.stringContaining('"observers" contains the class Tracker'),
    });
  });

  it.each([
    ['a text', 'Tracker'],
    ['null', null],
    ['an object', {}],
  ])(
    'TE-01 the application does not start if "observers" is, or contains, %s',
    async (_what, wrong) => {
      const lists = wrong !== null && typeof wrong === 'object' ? [wrong] : [wrong, [wrong]];
      for (const observers of lists) {
        if (observers === null) continue;
        await expect(
          WebhookApplication.start({ payments: { observers: observers as never } }),
        ).rejects.toMatchObject({ code: 'options_invalid' });
      }
    },
  );
});

const PAST = new Date('2026-01-01T00:00:00Z');
const PAYMENT = { company: 'default', reference: 'order-1', transactionId: 't-1' };

onMemoryAndSqlite((data) => {
  const start = async () => {
    const observed = new Observed();
    const app = await ExpectingApplication.start(await data(), { observers: [observed.observer] });
    return { app, observed };
  };

  it('TE-01 an observer gets an expectation once if a webhook request fulfils the expectation by transaction id or reference', async () => {
    const { app, observed } = await start();
    await using _ = app;
    await app.expect(1);
    await app.expectations.expect({ reference: 'order-2' });
    const timestamp = new Date().toISOString();
    await app.webhook('t-1', 'other', timestamp);
    await app.webhook('t-other', 'order-2');
    await app.webhook('t-1', 'other', timestamp);
    await eventually(() => expect(observed.of('expectationFulfilled')).toHaveLength(2));
    await app.ask(1);
    expect(observed.of('expectationFulfilled')).toEqual([
      { ...PAYMENT, by: 'webhook', eventId: expect.any(String) },
      {
        ...PAYMENT,
        reference: 'order-2',
        transactionId: null,
        by: 'webhook',
        eventId: expect.any(String),
      },
    ]);
  });

  it('TE-01 an observer gets each fulfilled expectation, even if one transaction id is a prefix of another', async () => {
    const { app, observed } = await start();
    await using _ = app;
    const numbers = Array.from({ length: 25 }, (_n, index) => Number(`1${index}`));
    for (const n of [1, ...numbers]) await app.expect(n);
    for (const n of numbers) await app.webhook(`t-${n}`);
    await app.webhook('t-1');
    const ids = () => observed.of('expectationFulfilled').map((info) => info['transactionId']);
    const all = [...numbers, 1].map((n) => `t-${n}`);
    await eventually(() => expect(new Set(ids())).toEqual(new Set(all)));
  });

  it('TE-01 an observer gets each poll, and an expectation that a poll fulfils', async () => {
    const { app, observed } = await start();
    await using _ = app;
    app.respond(1, { status: 'processing' }, apiError(503), { status: 'complete' });
    await app.expect(1);
    for (let n = 0; n < 4; n += 1) await app.ask(1);
    const results = observed.of('pollEnded').map(({ result }) => result);
    expect(results).toEqual(['pending', 'unknown', 'event', 'event']);
    expect(observed.of('pollEnded')[0]).toEqual({
      ...PAYMENT,
      result: 'pending',
      durationMs: expect.any(Number),
    });
    await eventually(() => expect(observed.of('expectationFulfilled')).toHaveLength(1));
    expect(observed.of('expectationFulfilled')).toEqual([
      { ...PAYMENT, by: 'poll', eventId: 'poll:t-1:transaction.completed' },
    ]);
    expect(observed.of('eventReceived')).toMatchObject([{ source: 'poll' }]);
  });

  it('TE-01 an observer gets an expectation that a poll fulfils with the event of an earlier webhook request', async () => {
    const { app, observed } = await start();
    await using _ = app;
    app.respond(1, { status: 'complete' });
    await app.webhook('t-1');
    await settled(app.app);
    await app.expect(1);
    await app.ask(1);
    await eventually(() => expect(observed.of('expectationFulfilled')).toHaveLength(1));
    expect(observed.of('expectationFulfilled')).toMatchObject([{ ...PAYMENT, by: 'webhook' }]);
  });

  it('TE-01 an observer gets an overdue expectation once', async () => {
    const { app, observed } = await start();
    await using _ = app;
    app.respond(1, apiError(404));
    await app.expect(1, { dueBy: PAST });
    await eventually(() => expect(observed.of('expectationOverdue')).toHaveLength(1));
    await app.ask(1);
    expect(observed.of('expectationOverdue')).toEqual([PAYMENT]);
    expect(observed.of('eventReceived')).toMatchObject([
      { source: 'overdue', eventId: expect.stringMatching(/^overdue:order-1:/) },
    ]);
  });
});

const FAILURES: readonly [string, () => unknown][] = [
  [
    'throws',
    () => {
      throw new Error('the tracker is down');
    },
  ],
  ['rejects', () => Promise.reject(new Error('the tracker is down'))],
  ['never resolves', () => new Promise(() => {})],
  // oxlint-disable-next-line unicorn/no-thenable -- the module calls it
  ['returns an object whose then() throws', () => ({ then: () => FAILURES[0]![1]() })],
];

onMemoryAndSqlite((data) => {
  it.each(FAILURES)(
    'TE-01 an observer that %s in every method changes nothing, and the next observer is called',
    async (what, fail) => {
      const observed = new Observed();
      const observers: PaymentsObserver[] = [observerOf(fail), observed.observer];
      let broken = true;
      const book = () => {
        if (broken) throw new Error('broken');
      };
      const options = { observers, worker: { retry: none } };
      await using app = await startOn(await data(), { book }, options);
      await post(app, 'e-1', {});
      await eventually(async () => expect(await states(app, 'e-1')).toEqual({ book: 'dead 1' }));
      broken = false;
      await inboxOf(app).redrive({ handler: 'book' });
      await eventually(async () => expect(await states(app, 'e-1')).toEqual({ book: 'done 1' }));
      expect(await post(app, 'e-2', {})).toBe(200);
      await eventually(() => expect(observed.of('attemptEnded')).toHaveLength(3));
      const lines = app.log.matching(/An observer failed in attemptEnded\(\)/);
      expect(lines).toHaveLength(what === 'never resolves' ? 0 : 1);
      for (const line of lines) expect(line).toContain('Error: the tracker is down');
    },
  );

  it.each([
    ['a method that throws', observerOf(FAILURES[0]![1])],
    ['a getter that throws', new Proxy<PaymentsObserver>({}, { get: FAILURES[0]![1] })],
  ])('TE-01 an observer with %s changes nothing about expected payments', async (_what, one) => {
    const observers = [one];
    await using app = await ExpectingApplication.start(await data(), { observers });
    app.respond(1, { status: 'complete' });
    await app.expect(1);
    expect(await app.ask(1)).toMatchObject({ state: 'fulfilled', fulfilled: { by: 'poll' } });
    expect(app.books.booked).toEqual(['transaction.completed t-1 poll']);
    await app.expect(2);
    expect(await app.webhook('t-2')).toBe(200);
    await eventually(async () => expect(await app.find(2)).toMatchObject({ state: 'fulfilled' }));
  });
});

describe('a filter or an interceptor of a handler that throws', () => {
  class Broken implements ExceptionFilter {
    catch(): never {
      throw new TypeError('the filter is broken');
    }
  }
  class Rethrows implements ExceptionFilter {
    catch(error: unknown): never {
      throw error;
    }
  }
  class Wraps implements NestInterceptor {
    intercept(_context: unknown, next: CallHandler): Observable<unknown> {
      return next
        .handle()
        .pipe(catchError((cause: unknown) => throwError(() => new Error('wrapped', { cause }))));
    }
  }
  class Replaces implements NestInterceptor {
    intercept(_context: unknown, next: CallHandler): Observable<unknown> {
      return next
        .handle()
        .pipe(catchError(() => throwError(() => new TypeError('the interceptor is broken'))));
    }
  }
  const failed = async (decorator: MethodDecorator, error: unknown) => {
    class Books {
      @decorator
      @OnPaymentEvent('*', { name: 'book' })
      async book(): Promise<void> {
        throw error;
      }
    }
    Injectable()(Books);
    await using app = await WebhookApplication.start({ providers: [Books] });
    await post(app, 'e-1');
    const [line] = app.log.matching(/Delivery of event e-1 .* failed/);
    return { ...(await storedDelivery(app, 'e-1')), line: line! };
  };
  const LEDGER = new Error('the ledger is down');

  it.each([
    ['a filter', UseFilters(Broken), 'the filter is broken'],
    ['an interceptor', UseInterceptors(Replaces), 'the interceptor is broken'],
  ])(
    'TE-02 if %s of a handler throws, the attempt and the log have both this error and the error of the handler',
    async (_what, decorator, later) => {
      const { lastError, line, state } = await failed(decorator, LEDGER);
      expect(state).toBe('pending');
      expect(lastError).toBe(
        'Error: Error: the ledger is down. A filter or an interceptor of the handler then threw: ' +
          `TypeError: ${later}`,
      );
      expect(line).toContain(lastError!);
      expect(line).toMatch(/\n {4}at .*telemetry\/observers/);
    },
  );

  it.each([
    ['a filter throws the error of the handler', UseFilters(Rethrows), 'Error: the ledger is down'],
    [
      'an interceptor throws an error whose cause is the error of the handler',
      UseInterceptors(Wraps),
      'Error: wrapped (cause: Error: the ledger is down)',
    ],
  ])('TE-02 if %s, the attempt has only the last error', async (_what, decorator, error) => {
    expect((await failed(decorator, LEDGER)).lastError).toBe(error);
  });

  it('TE-02 a delivery is dead after an UnrecoverableError of the handler, even if a filter of the handler then throws', async () => {
    const { state, lastError } = await failed(UseFilters(Broken), new UnrecoverableError('no'));
    expect(state).toBe('dead');
    expect(lastError).toContain('UnrecoverableError (unrecoverable): no.');
    expect(lastError).toContain('TypeError: the filter is broken');
  });

  it('TE-02 the last error of a delivery names the error of the handler and the error of the filter, even if both are long', async () => {
    const { lastError } = await failed(UseFilters(Broken), new Error('x'.repeat(5000)));
    expect(lastError).toContain('Error: xxx');
    expect(lastError).toContain('TypeError: the filter is broken');
  });
});
