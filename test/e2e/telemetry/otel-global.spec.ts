import { afterEach, describe, expect, it } from '@jest/globals';
import { metrics as metricsApi, SpanStatusCode, trace } from '@opentelemetry/api';
import { openTelemetry } from 'nestjs-payments/otel';
import { inboxOf, startOn } from '../../support/inbox/inbox-application.js';
import { MEMORY } from '../../support/inbox/expecting-application.js';
import { Metrics, Traces } from '../../support/telemetry/otel-sdk.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';

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

  it('TE-03 TE-04 an SDK that starts after openTelemetry() is called, and before the application, gets spans and metrics', async () => {
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
