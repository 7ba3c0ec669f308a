import { afterEach, describe, expect, it } from '@jest/globals';
import { fixed, none, PaymentsApiService } from 'nestjs-payments';
import { apiError } from 'nestjs-payments/testing';
import { json, ScriptedService } from '../../support/api/scripted-service.js';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import { ExpectingApplication, MEMORY } from '../../support/inbox/expecting-application.js';
import { Metrics, Traces } from '../../support/telemetry/otel-sdk.js';
import { eventually } from '../../support/time/waiting.js';
import { company, WebhookApplication } from '../../support/webhook/webhook-application.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { signedWebhook } from '../../support/webhook/signed-webhook.js';
import { settled } from '../../support/inbox/settled.js';
import { metrics as metricsApi, SpanStatusCode, trace } from '@opentelemetry/api';
import { openTelemetry } from 'nestjs-payments/otel';

const LATER = { retry: fixed([60_000]) };

describe('metrics of webhook requests', () => {
  it('TE-04 received and duplicate events are counted by source, type, status and reason, and the time to store events is measured', async () => {
    const metrics = new Metrics();
    const observers = [metrics.observer];
    await using app = await startOn(MEMORY, { book: () => {} }, { observers });
    const completed = { eventType: 'transaction.completed', data: { transactionId: 't-1' } };
    await app.send(webhookRequest({ id: 'e-1', ...completed }));
    await app.send(webhookRequest({ id: 'e-2', ...completed }));
    await post(app, 'e-3', {});
    await post(app, 'e-4', {});
    expect(await metrics.values('payments.events.received')).toEqual({
      'event_type=transaction.completed source=webhook status=stored': 1,
      'event_type=transaction.updated source=webhook status=stored': 2,
    });
    expect(await metrics.values('payments.events.duplicates')).toEqual({
      'reason=transaction source=webhook': 1,
    });
    expect(await metrics.values('payments.receive.duration')).toEqual({ 'source=webhook': 4 });
  });

  it('TE-04 rejected webhook requests are counted by error code', async () => {
    const metrics = new Metrics();
    await using app = await startOn(MEMORY, {}, { observers: [metrics.observer] });
    const request = webhookRequest({ id: 'e-1' });
    await app.send(request, { headers: { 'X-Webhook-Signature': undefined } });
    await app.send(request, { path: '/webhooks/payments/unknown' });
    const found = await metrics.values('payments.requests.rejected');
    expect(found).toEqual({ 'error.type=signature_missing': 1, 'error.type=company_unknown': 1 });
  });

  it('TE-04 only the first 50 event types of a process have a time series of their own', async () => {
    const metrics = new Metrics();
    const observers = [metrics.observer];
    await using app = await startOn(MEMORY, { book: () => {} }, { observers });
    for (let n = 1; n <= 53; n += 1) {
      await app.send(webhookRequest({ id: `e-${n}`, eventType: `type.${n}` }));
    }
    const found = await metrics.values('payments.events.received');
    expect(Object.keys(found)).toHaveLength(51);
    expect(found).toMatchObject({
      'event_type=type.50 source=webhook status=stored': 1,
      'event_type=_OTHER source=webhook status=stored': 3,
    });
  });

  it('TE-04 metrics name the company only if companyAttribute is set', async () => {
    const [named, unnamed] = [new Metrics(), new Metrics()];
    const secret = 'whsec_a';
    const observers = [named.observe({ companyAttribute: true }), unnamed.observer];
    await using app = await WebhookApplication.start({
      payments: { companies: [company('acme', secret)], observers },
    });
    await app.send(signedWebhook({ webhookSecret: secret }, { id: 'e-1' }), {
      path: '/webhooks/payments/acme',
    });
    const name = 'payments.events.received';
    const rest = 'event_type=transaction.completed source=webhook status=unhandled';
    expect(await named.values(name)).toEqual({ [`company=acme ${rest}`]: 1 });
    expect(await unnamed.values(name)).toEqual({ [rest]: 1 });
  });
});

describe('metrics of handlers', () => {
  it('TE-04 attempts are counted and timed by handler, outcome and error, and the time until an event is handled is measured', async () => {
    const metrics = new Metrics();
    const handlers = {
      book: () => {},
      mail: () => {
        throw new Error('the mail server is down');
      },
      slow: () => new Promise<void>(() => {}),
    };
    const options = { observers: [metrics.observer], worker: { retry: none, timeoutMs: 20 } };
    await using app = await startOn(MEMORY, handlers, options);
    await post(app, 'e-1', {});
    await settled(app.app);
    const attempts = {
      'handler=book outcome=done': 1,
      'handler=mail outcome=dead': 1,
      'handler=slow outcome=dead': 1,
    };
    expect(await metrics.values('payments.process.duration')).toEqual(attempts);
    expect(await metrics.values('payments.attempts')).toEqual({
      'handler=book outcome=done': 1,
      'error.type=_OTHER handler=mail outcome=dead': 1,
      'error.type=handler_timeout handler=slow outcome=dead': 1,
    });
    expect(await metrics.values('payments.delivery.duration')).toEqual({ 'handler=book': 1 });
    await inboxOf(app).redrive({ handler: 'mail' });
    await inboxOf(app).redrive({});
    expect(await metrics.values('payments.deliveries.redriven')).toMatchObject({
      'handler=mail': 1,
    });
  });

  it('TE-04 a failed attempt that is retried is counted as failed', async () => {
    const metrics = new Metrics();
    const book = () => {
      throw new Error('broken');
    };
    const options = { observers: [metrics.observer], worker: LATER };
    await using app = await startOn(MEMORY, { book }, options);
    void post(app, 'e-1', {});
    await eventually(async () =>
      expect(await metrics.values('payments.attempts')).toEqual({
        'error.type=_OTHER handler=book outcome=failed': 1,
      }),
    );
  });
});

describe('metrics of calls and expected payments', () => {
  it('TE-04 token requests are counted, and calls are counted and timed by method, status class and error', async () => {
    const service = await ScriptedService.start();
    const metrics = new Metrics();
    const api = { retry: { attempts: 1 } };
    const payments = { baseUrl: service.baseUrl, observers: [metrics.observer], api };
    await using app = await WebhookApplication.start({ payments });
    const client = app.app.get(PaymentsApiService);
    await client.getTransaction('t-1');
    service.onCall = json(503, {});
    await expect(client.getTransaction('t-1')).rejects.toThrow();
    await service.stop();
    await expect(client.getTransaction('t-1')).rejects.toMatchObject({ code: 'connection_failed' });
    expect(await metrics.values('payments.token.fetches')).toEqual({ '': 1 });
    expect(await metrics.values('payments.api.call.duration')).toEqual({
      'http.request.method=GET status_class=2xx': 1,
      'error.type=server_error http.request.method=GET status_class=5xx': 1,
      'error.type=connection_failed http.request.method=GET status_class=none': 1,
    });
  });

  it('TE-04 polls are counted by result, fulfilled expectations are counted by source, and overdue expectations have one count', async () => {
    const metrics = new Metrics();
    const observers = [metrics.observer];
    await using app = await ExpectingApplication.start(MEMORY, { observers });
    app.respond(1, { status: 'processing' }, { status: 'complete' });
    app.respond(3, apiError(404));
    for (const n of [1, 2]) await app.expect(n);
    await app.expect(3, { dueBy: new Date('2026-01-01') });
    for (let n = 0; n < 2; n += 1) await app.ask(1);
    await app.webhook('t-2');
    await eventually(async () => {
      expect(await metrics.values('payments.expectations.fulfilled')).toEqual({
        'source=poll': 1,
        'source=webhook': 1,
      });
      expect(await metrics.values('payments.expectations.became_overdue')).toEqual({ '': 1 });
    });
    expect(await metrics.values('payments.polls')).toEqual({
      'result=pending': 1,
      'result=event': 1,
      'result=unknown': 1,
    });
  });
});

const TRACEPARENT = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

describe('the global SDK', () => {
  afterEach(() => {
    trace.disable();
    metricsApi.disable();
  });

  const receive = async (observers: readonly ReturnType<typeof openTelemetry>[]) => {
    await using app = await startOn(MEMORY, { book: () => {} }, { observers });
    const headers = { traceparent: TRACEPARENT };
    const { status } = await app.send(webhookRequest({ id: 'e-1' }), { headers });
    return { status, event: (await inboxOf(app).get('e-1'))! };
  };

  it('TE-03 TE-04 an SDK gets spans and metrics if it starts after the call of openTelemetry() and before the application', async () => {
    const observers = [openTelemetry()];
    const [traces, metrics] = [new Traces(), new Metrics()];
    trace.setGlobalTracerProvider(traces.provider);
    metricsApi.setGlobalMeterProvider(metrics.provider);
    await receive(observers);
    expect(await traces.ended('receive')).toHaveLength(1);
    expect(await traces.ended('process')).toHaveLength(1);
    expect(await metrics.values('payments.attempts')).toEqual({
      'handler=book outcome=done': 1,
    });
    expect((await metrics.collect()).has('payments.store.up')).toBe(false);
  });

  it('TE-03 without an SDK, events are handled, and stored with the traceparent of their sender', async () => {
    const { status, event } = await receive([openTelemetry()]);
    expect(status).toBe(200);
    expect(event.headers['traceparent']).toBe(TRACEPARENT);
    expect(event.deliveries).toMatchObject([{ state: 'done', attempts: 1 }]);
  });
});

describe('an attempt whose lease was lost', () => {
  const ATTEMPT = {
    company: 'default',
    eventId: 'e-1',
    handler: 'book',
    attempt: 1,
    source: 'webhook',
    receivedAtMs: 0,
    ageMs: 1000,
  } as const;

  it('TE-03 the span of an attempt has the status ERROR if the lease was lost, and UNSET if the attempt was released', () => {
    const traces = new Traces();
    const [observer] = traces.observers;
    const info = { ...ATTEMPT, kind: 'attempt', traceparent: null, eventType: null } as const;
    for (const outcome of ['lost', 'released']) {
      const error = outcome === 'released' ? 'the application closes' : null;
      observer!.startSpan!(info)!.end({ outcome, error, errorCode: null });
    }
    const [lost, released] = traces.of('process');
    expect(lost).toMatchObject({ name: 'process', status: { code: SpanStatusCode.ERROR } });
    expect(lost!.attributes).toMatchObject({ 'payments.outcome': 'lost', 'error.type': 'lost' });
    expect(released!.status).toEqual({ code: SpanStatusCode.UNSET });
  });

  it('TE-04 an attempt whose lease was lost is counted with the outcome lost, and not as handled', async () => {
    const metrics = new Metrics();
    const facts = { durationMs: 5, retryInMs: null, error: null, errorCode: null, stack: '' };
    metrics.observer.attemptEnded!({ ...ATTEMPT, ...facts, outcome: 'lost' });
    expect(await metrics.values('payments.attempts')).toEqual({ 'handler=book outcome=lost': 1 });
    expect(await metrics.values('payments.delivery.duration')).toEqual({});
  });
});
