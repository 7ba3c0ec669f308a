import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { PaymentsApiService } from 'nestjs-payments';
import { apiError } from 'nestjs-payments/testing';
import { json, ScriptedService } from '../../support/api/scripted-service.js';
import { ExpectingApplication, MEMORY } from '../../support/inbox/expecting-application.js';
import { Traces, useContext } from '../../support/telemetry/otel-sdk.js';
import { WebhookApplication } from '../../support/webhook/webhook-application.js';

let undo: () => void;
beforeAll(() => void (undo = useContext()));
afterAll(() => undo());

describe('calls of the service', () => {
  const start = async () => {
    const service = await ScriptedService.start();
    const traces = new Traces();
    const { observers } = traces;
    const api = { retry: { attempts: 2, baseDelayMs: 1 } };
    const app = await WebhookApplication.start({
      payments: { baseUrl: service.baseUrl, observers, api },
    });
    const end = async (): Promise<void> => {
      await app[Symbol.asyncDispose]();
      await service.stop();
    };
    return { service, traces, api: app.app.get(PaymentsApiService), [Symbol.asyncDispose]: end };
  };

  it('TE-03 a call to the service has a CLIENT span with method, path template, server and status, as a child of the active span', async () => {
    await using run = await start();
    const { api, service, traces } = run;
    await traces.provider.getTracer('test').startActiveSpan('handler', async (span) => {
      await api.getTransaction('t-1');
      span.end();
    });
    const [call] = traces.of('GET') as [ReadableSpan];
    expect(call).toMatchObject({
      name: 'GET /v1/transactions/{id}',
      kind: SpanKind.CLIENT,
      status: { code: SpanStatusCode.UNSET },
      parentSpanContext: traces.of('handler')[0]!.spanContext(),
    });
    expect(call.attributes).toEqual({
      'http.request.method': 'GET',
      'url.template': '/v1/transactions/{id}',
      'server.address': '127.0.0.1',
      'server.port': service.port,
      'http.response.status_code': 200,
      'payments.company': 'default',
    });
    expect(trace.getActiveSpan()).toBeUndefined();
  });

  it('TE-03 the span of a call that fails has the last status, the number of retries and the error', async () => {
    await using run = await start();
    run.service.onCall = json(503, {});
    await expect(run.api.getTransaction('t-1')).rejects.toMatchObject({ code: 'server_error' });
    expect(run.traces.of('GET')).toMatchObject([
      {
        status: { code: SpanStatusCode.ERROR, message: expect.any(String) },
        attributes: {
          'http.response.status_code': 503,
          'http.request.resend_count': 1,
          'error.type': 'server_error',
        },
      },
    ]);
  });
});

describe('polls of the service', () => {
  it('TE-03 a poll has a CLIENT span with its result, and this span is the parent of the receive span of the found event', async () => {
    const traces = new Traces();
    await using app = await ExpectingApplication.start(MEMORY, { observers: traces.observers });
    app.respond(1, apiError(503), { status: 'complete' });
    await app.expect(1);
    for (let n = 0; n < 2; n += 1) await app.ask(1);
    const [failed, poll] = traces.of('poll') as [ReadableSpan, ReadableSpan];
    expect(failed).toMatchObject({
      status: { code: SpanStatusCode.ERROR },
      attributes: { 'payments.result': 'unknown', 'error.type': '_OTHER' },
    });
    expect(poll).toMatchObject({ name: 'poll', kind: SpanKind.CLIENT });
    expect(poll.parentSpanContext).toBeUndefined();
    expect(poll.attributes).toEqual({
      'messaging.system': 'nestjs-payments',
      'messaging.operation.name': 'poll',
      'messaging.operation.type': 'receive',
      'messaging.message.conversation_id': 't-1',
      'payments.company': 'default',
      'payments.reference': 'order-1',
      'payments.result': 'event',
    });
    const [receive] = traces.of('receive') as [ReadableSpan];
    expect(receive.parentSpanContext).toEqual(poll.spanContext());
    expect(receive.attributes).toMatchObject({ 'payments.source': 'poll' });
    const { traceId, spanId } = receive.spanContext();
    const [process] = traces.of('process') as [ReadableSpan];
    expect(process.links[0]!.context).toMatchObject({ traceId, spanId });
  });
});
