import type { Server } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { context, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Span, Tracer, TracerProvider } from '@opentelemetry/api';
import type { INestApplication } from '@nestjs/common';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { none } from 'nestjs-payments';
import { openTelemetry } from 'nestjs-payments/otel';
import type { OpenTelemetryOptions } from 'nestjs-payments/otel';
import { inboxOf, post, startOn } from '../../support/inbox/inbox-application.js';
import { MEMORY, onMemoryAndSqlite } from '../../support/inbox/expecting-application.js';
import { Traces, useContext } from '../../support/telemetry/otel-sdk.js';
import { eventually } from '../../support/time/waiting.js';
import { webhookRequest } from '../../support/webhook/handler-application.js';
import { durableSqlite } from '../../support/inbox/durable-inboxes.js';

let undo: () => void;
beforeAll(() => void (undo = useContext()));
afterAll(() => undo());

const TRACE = 'a'.repeat(32);
const SPAN = 'b'.repeat(16);
const TRACEPARENT = `00-${TRACE}-${SPAN}-01`;
const DATA = { transactionId: 't-1', externalReference: 'order-1' };

const linkOf = (span: ReadableSpan) => span.links.map((link) => link.context);

onMemoryAndSqlite((data) => {
  it('TE-03 a webhook request has a receive span within the trace of its traceparent header, and a linked process span', async () => {
    const traces = new Traces();
    const { observers } = traces;
    const active: unknown[] = [];
    const book = () => void active.push(trace.getActiveSpan()?.spanContext());
    await using app = await startOn(await data(), { book }, { observers });
    const event = { id: 'e-1', eventType: 'transaction.updated', data: DATA };
    await app.send(webhookRequest(event), { headers: { traceparent: TRACEPARENT } });
    const [process] = (await traces.ended('process')) as [ReadableSpan];
    const [receive] = (await traces.ended('receive')) as [ReadableSpan];
    expect(receive).toMatchObject({
      name: 'receive transaction.updated',
      kind: SpanKind.CONSUMER,
      parentSpanContext: { traceId: TRACE, spanId: SPAN, isRemote: true },
      status: { code: SpanStatusCode.UNSET },
      instrumentationScope: { name: 'nestjs-payments' },
    });
    const shared = {
      'messaging.system': 'nestjs-payments',
      'messaging.destination.name': 'transaction.updated',
      'messaging.message.id': 'e-1',
      'payments.company': 'default',
      'payments.source': 'webhook',
    };
    expect(receive.attributes).toEqual({
      ...shared,
      'messaging.operation.name': 'receive',
      'messaging.operation.type': 'receive',
      'messaging.message.conversation_id': 't-1',
      'payments.status': 'stored',
    });
    expect(process).toMatchObject({
      name: 'process transaction.updated',
      kind: SpanKind.CONSUMER,
      status: { code: SpanStatusCode.UNSET },
    });
    expect(process.attributes).toEqual({
      ...shared,
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.destination.subscription.name': 'book',
      'payments.attempt': 1,
      'payments.outcome': 'done',
    });
    expect(process.parentSpanContext).toBeUndefined();
    const { traceId, spanId } = receive.spanContext();
    expect(traceId).toBe(TRACE);
    expect(linkOf(process)).toMatchObject([{ traceId, spanId, isRemote: true }]);
    expect(active).toEqual([process.spanContext()]);
  });

  it('TE-03 each attempt has a span with the error of its handler, linked to the span that received the event', async () => {
    const traces = new Traces();
    const { observers } = traces;
    const book = () => {
      throw new Error('the ledger is down');
    };
    const worker = { retry: none };
    await using app = await startOn(await data(), { book }, { observers, worker });
    await post(app, 'e-1', DATA);
    await traces.ended('process');
    await inboxOf(app).redrive({ ids: ['e-1'] });
    const attempts = await traces.ended('process', 2);
    const { traceId, spanId } = traces.of('receive')[0]!.spanContext();
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({
        name: 'process transaction.updated',
        status: { code: SpanStatusCode.ERROR, message: 'Error: the ledger is down' },
        attributes: { 'error.type': '_OTHER', 'payments.outcome': 'dead' },
      });
      expect(linkOf(attempt)).toMatchObject([{ traceId, spanId }]);
    }
  });
});

describe('on sqlite', () => {
  const durable = durableSqlite();

  it('TE-03 an attempt in another process, three days later, is linked to the span that received the event', async () => {
    const data = await durable.data();
    const [receiver, worker] = [new Traces(), new Traces()];
    {
      const options = { observers: receiver.observers, worker: { background: false } };
      await using app = await startOn(data, { book: () => {} }, options);
      await post(app, 'e-1', DATA);
    }
    await data.pass(3 * 86_400_000);
    const { observers } = worker;
    await using _ = await startOn(data, { book: () => {} }, { observers });
    const [process] = (await worker.ended('process')) as [ReadableSpan];
    expect(receiver.of('process')).toEqual([]);
    const { traceId, spanId } = receiver.of('receive')[0]!.spanContext();
    expect(linkOf(process)).toMatchObject([{ traceId, spanId }]);
    expect(process.attributes).toMatchObject({
      'messaging.destination.name': 'transaction.updated',
    });
  });
});

describe('the span of a receipt', () => {
  /** Handles each HTTP request within a span, as an HTTP instrumentation does. */
  const traceRequests = (app: INestApplication, traces: Traces): void => {
    const server = app.getHttpServer() as Server;
    const emit = server.emit.bind(server);
    server.emit = (event, ...args: unknown[]) => {
      if (event !== 'request') return emit(event, ...args);
      const span = traces.provider.getTracer('http').startSpan('POST', { kind: SpanKind.SERVER });
      (args[1] as NodeJS.EventEmitter).once('close', () => span.end());
      return context.with(trace.setSpan(ROOT_CONTEXT, span), () => emit(event, ...args));
    };
  };

  it('TE-03 the receive span is a child of the active span of the HTTP request', async () => {
    const traces = new Traces();
    const main = (app: INestApplication): void => traceRequests(app, traces);
    const options = { observers: traces.observers, main };
    await using app = await startOn(MEMORY, { book: () => {} }, options);
    await app.send(webhookRequest({ id: 'e-1' }), { headers: { traceparent: TRACEPARENT } });
    const [http] = (await traces.ended('POST')) as [ReadableSpan];
    const [receive] = (await traces.ended('receive')) as [ReadableSpan];
    expect(receive.parentSpanContext).toEqual(http.spanContext());
    const [process] = (await traces.ended('process')) as [ReadableSpan];
    expect(process.parentSpanContext).toBeUndefined();
  });

  it.each(['', 'x', `00-${'0'.repeat(32)}-${SPAN}-01`, `ff-${TRACE}-${SPAN}-01`])(
    'TE-03 an invalid traceparent header (%j) starts a new trace',
    async (traceparent) => {
      const traces = new Traces();
      const { observers } = traces;
      await using app = await startOn(MEMORY, { book: () => {} }, { observers });
      await app.send(webhookRequest({ id: 'e-1' }), { headers: { traceparent } });
      const [receive] = (await traces.ended('receive')) as [ReadableSpan];
      expect(receive.parentSpanContext).toBeUndefined();
    },
  );

  it('TE-03 a copy of an event has its own receive span, with the status copy', async () => {
    const traces = new Traces();
    const { observers } = traces;
    await using app = await startOn(MEMORY, { book: () => {} }, { observers });
    const request = webhookRequest({ id: 'e-1' });
    for (let n = 0; n < 2; n += 1) await app.send(request);
    const spans = await traces.ended('receive', 2);
    expect(spans.map(({ attributes }) => attributes['payments.status'])).toEqual([
      'stored',
      'copy',
    ]);
    await eventually(() => expect(traces.of('process')).toHaveLength(1));
  });
});

describe('an SDK that fails', () => {
  const fail = (): never => {
    throw new Error('the SDK is broken');
  };
  const spanWith = (broken: Partial<Span>): Span =>
    Object.assign(trace.wrapSpanContext({ traceId: TRACE, spanId: SPAN, traceFlags: 1 }), broken);
  const FAILING: readonly [string, OpenTelemetryOptions][] = [
    ['getTracer() throws', { tracerProvider: { getTracer: fail } }],
    ['startSpan() throws', { tracerProvider: tracerWith({ startSpan: fail }) }],
    [
      'spanContext() throws',
      { tracerProvider: tracerWith({ startSpan: () => spanWith({ spanContext: fail }) }) },
    ],
    ['end() throws', { tracerProvider: tracerWith({ startSpan: () => spanWith({ end: fail }) }) }],
    ['getMeter() throws', { meterProvider: { getMeter: fail } }],
  ];

  it.each(FAILING)(
    'TE-03 if %s, the event is received and handled once',
    async (_what, options) => {
      let ran = 0;
      const book = () => void (ran += 1);
      await using app = await startOn(MEMORY, { book }, { observers: [openTelemetry(options)] });
      expect(await post(app, 'e-1', DATA)).toBe(200);
      const { deliveries } = (await inboxOf(app).get('e-1'))!;
      expect(deliveries).toMatchObject([{ state: 'done', attempts: 1 }]);
      expect(ran).toBe(1);
    },
  );
});

function tracerWith(tracer: Partial<Tracer>): TracerProvider {
  return { getTracer: () => tracer as Tracer };
}
