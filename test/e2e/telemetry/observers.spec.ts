import { describe, expect, it } from '@jest/globals';
import { Injectable, Module } from '@nestjs/common';
import { fixed, none, OnPaymentEvent, PaymentsError } from 'nestjs-payments';
import type { ObserverInfo, PaymentsModuleOptions } from 'nestjs-payments';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import type { Handle } from '../../support/inbox/inbox-application.js';
import { MEMORY, onMemoryAndSqlite } from '../../support/inbox/expecting-application.js';
import { Observed } from '../../support/telemetry/recording-observer.js';
import { eventually } from '../../support/time/waiting.js';

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

  it('TE-01 an observer gets copies, contradicting copies and second events of a transaction as duplicates', async () => {
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

  it('TE-01 an observer gets a timed-out attempt with the code handler_timeout', async () => {
    const book: Handle = async (_event, { signal }) =>
      new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    const { app, observed } = await start({ book }, { worker: { retry: none, timeoutMs: 20 } });
    await using _ = app;
    await post(app, 'e-1', DATA);
    await eventually(() => expect(observed.of('deliveryDead')).toHaveLength(1));
    expect(observed.of('attemptEnded')).toMatchObject([{ errorCode: 'handler_timeout' }]);
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

  it('TE-01 what observers get is frozen and contains no payload, secret or phone number', async () => {
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

  it('TE-01 an observer gets each rejected webhook request with its code, and no company that does not exist', async () => {
    const observed = new Observed();
    const book = () => Promise.reject(new Error('broken'));
    await using app = await startOn(MEMORY, { book }, { observers: [observed.observer] });
    expect(await rejections(app, observed)).toEqual([
      { code: 'signature_missing', company: null, eventId: null },
      { code: 'signature_mismatch', company: 'default', eventId: null },
      { code: 'company_unknown', company: null, eventId: null },
      { code: 'handlers_failed', company: 'default', eventId: 'e-1' },
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

  it('TE-01 the module finds the provider of an observer in any module', async () => {
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
