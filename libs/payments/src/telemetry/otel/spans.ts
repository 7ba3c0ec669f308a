import {
  context,
  isSpanContextValid,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import type {
  Attributes,
  Context,
  Span,
  SpanContext,
  SpanOptions,
  Tracer,
} from '@opentelemetry/api';
import type { PaymentsSpan, SpanResult, TracedOperation } from '../observers.js';

type Operation<K extends TracedOperation['kind']> = Extract<TracedOperation, { readonly kind: K }>;

interface SpanPlan {
  readonly name: string;
  readonly options: SpanOptions;
  readonly parent: Context;
  /** Name of the attribute for the outcome of the operation, if the span has one. */
  readonly outcome?: string;
}

export function startSpan(tracer: Tracer, operation: TracedOperation): PaymentsSpan {
  const { name, options, parent, outcome } = planOf(operation);
  const span = tracer.startSpan(name, options, parent);
  const active = trace.setSpan(parent, span);
  return {
    traceparent: traceparentOf(span.spanContext()),
    run: (work) => context.with(active, work),
    end: (result) => end(span, result, outcome),
  };
}

function planOf(operation: TracedOperation): SpanPlan {
  if (operation.kind === 'receive') return receive(operation);
  if (operation.kind === 'attempt') return attempt(operation);
  return operation.kind === 'call' ? call(operation) : poll(operation);
}

/** The parent is the active span, for example of the HTTP request or of a poll; otherwise the sender's span. */
function receive(event: Operation<'receive'>): SpanPlan {
  const active = context.active();
  const sender = spanContextOf(event.traceparent);
  const hasParent = trace.getSpan(active) !== undefined || sender === null;
  return {
    name: `receive ${event.eventType}`,
    options: {
      kind: SpanKind.CONSUMER,
      attributes: {
        ...messaging('receive', 'receive', event),
        'messaging.message.id': event.eventId,
        'messaging.destination.name': event.eventType,
        'payments.source': event.source,
      },
    },
    parent: hasParent ? active : trace.setSpanContext(active, sender),
    outcome: 'payments.status',
  };
}

/** The span begins a new trace with a link to the span of the receipt, because an attempt may run days later. */
function attempt(info: Operation<'attempt'>): SpanPlan {
  const { eventType } = info;
  const receipt = spanContextOf(info.traceparent);
  const attributes: Attributes = {
    ...messaging('process', 'process', info),
    'messaging.message.id': info.eventId,
    'messaging.destination.subscription.name': info.handler,
    'payments.source': info.source,
    'payments.attempt': info.attempt,
  };
  if (eventType !== null) attributes['messaging.destination.name'] = eventType;
  return {
    name: eventType === null ? 'process' : `process ${eventType}`,
    options: {
      kind: SpanKind.CONSUMER,
      links: receipt === null ? [] : [{ context: receipt }],
      attributes,
    },
    parent: ROOT_CONTEXT,
    outcome: 'payments.outcome',
  };
}

function call({ company, method, path, baseUrl }: Operation<'call'>): SpanPlan {
  return {
    name: `${method} ${path}`,
    options: {
      kind: SpanKind.CLIENT,
      attributes: {
        'http.request.method': method,
        'url.template': path,
        ...serverOf(baseUrl),
        'payments.company': company,
      },
    },
    parent: context.active(),
  };
}

/** The span begins a new trace, because the current context may belong to an unrelated request that woke the worker. */
function poll(info: Operation<'poll'>): SpanPlan {
  return {
    name: 'poll',
    options: {
      kind: SpanKind.CLIENT,
      attributes: { ...messaging('poll', 'receive', info), 'payments.reference': info.reference },
    },
    parent: ROOT_CONTEXT,
    outcome: 'payments.result',
  };
}

function messaging(
  name: string,
  type: string,
  { company, transactionId }: { readonly company: string; readonly transactionId?: string | null },
): Attributes {
  const attributes: Attributes = {
    'messaging.system': 'nestjs-payments',
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'payments.company': company,
  };
  if (transactionId != null) attributes['messaging.message.conversation_id'] = transactionId;
  return attributes;
}

function serverOf(baseUrl: string | null): Attributes {
  if (baseUrl === null || !URL.canParse(baseUrl)) return {};
  const { hostname, port, protocol } = new URL(baseUrl);
  const standard = protocol === 'https:' ? 443 : 80;
  return { 'server.address': hostname, 'server.port': port === '' ? standard : Number(port) };
}

function end(span: Span, result: SpanResult, outcomeAttribute: string | undefined): void {
  const { outcome, error, errorCode, status, attempts } = result;
  if (outcomeAttribute !== undefined) span.setAttribute(outcomeAttribute, outcome);
  if (status != null) span.setAttribute('http.response.status_code', status);
  if (attempts !== undefined && attempts > 1)
    span.setAttribute('http.request.resend_count', attempts - 1);
  if (error !== null && outcome !== 'released') {
    span.setAttribute('error.type', errorCode ?? '_OTHER');
    span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  } else if (outcome === 'lost') {
    span.setAttribute('error.type', 'lost');
    span.setStatus({ code: SpanStatusCode.ERROR });
  }
  span.end();
}

function traceparentOf(span: SpanContext): string | null {
  if (!isSpanContextValid(span)) return null;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  return `00-${span.traceId}-${span.spanId}-${flags}`;
}

function spanContextOf(traceparent: string | null): SpanContext | null {
  const [version, traceId = '', spanId = '', flags = ''] = traceparent?.split('-') ?? [];
  const found = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
  return version !== 'ff' && isSpanContextValid(found) ? found : null;
}
