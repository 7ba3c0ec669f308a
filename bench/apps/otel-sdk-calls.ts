import { context, ROOT_CONTEXT, SpanKind, trace, ValueType } from '@opentelemetry/api';
import type { Attributes, SpanContext } from '@opentelemetry/api';
import type { PaymentEvent } from 'nestjs-payments';
import { startSdk } from './observers.ts';

const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const LONG = [...BUCKETS.slice(1), 300, 900, 3600, 10_800, 43_200, 86_400, 259_200];
const RECEIVED = {
  'payments.source': 'webhook',
  'payments.event_type': 'transaction.completed',
  'payments.status': 'stored',
};
const SOURCE = { 'payments.source': 'webhook' };
const HANDLER = { 'payments.handler': 'nothing' };
const ENDED = { ...HANDLER, 'payments.outcome': 'done' };

/**
 * Returns a handler that makes the same calls to the SDK of OpenTelemetry as `openTelemetry()` makes for one event that
 * is received and handled: two spans with the same number of attributes, the link and five measurements. Objects that
 * do not depend on the event are created once. Therefore the handler measures the minimum costs of telemetry for an
 * event.
 */
export function sdkCalls(): (event: PaymentEvent) => void {
  const { tracerProvider, meterProvider } = startSdk();
  const tracer = tracerProvider.getTracer('bench');
  const meter = meterProvider.getMeter('bench');
  const counter = (name: string) => meter.createCounter(name, { valueType: ValueType.INT });
  const histogram = (name: string, explicitBucketBoundaries = BUCKETS) =>
    meter.createHistogram(name, { unit: 's', advice: { explicitBucketBoundaries } });
  const received = counter('received');
  const attempts = counter('attempts');
  const receiveTime = histogram('receive.duration');
  const processTime = histogram('process.duration');
  const deliveryTime = histogram('delivery.duration', LONG);

  const span = (name: string, attributes: Attributes, receipt?: SpanContext): SpanContext => {
    const links = receipt === undefined ? [] : [{ context: receipt }];
    const options = { kind: SpanKind.CONSUMER, attributes, links };
    const started = tracer.startSpan(name, options, ROOT_CONTEXT);
    context.with(trace.setSpan(ROOT_CONTEXT, started), () => {});
    started.setAttribute('outcome', 'done');
    started.end();
    return started.spanContext();
  };

  return ({ id, eventType }) => {
    const event = (operation: string): Attributes => ({
      'messaging.system': 'nestjs-payments',
      'messaging.operation.name': operation,
      'messaging.operation.type': operation,
      'messaging.message.id': id,
      'messaging.destination.name': eventType,
      'payments.company': 'bench',
      'payments.source': 'webhook',
    });
    const receive = event('receive');
    receive['messaging.message.conversation_id'] = id;
    const receipt = span(`receive ${eventType}`, receive);
    received.add(1, RECEIVED);
    receiveTime.record(0.002, SOURCE);
    const process = event('process');
    process['messaging.destination.subscription.name'] = 'nothing';
    process['payments.attempt'] = 1;
    span(`process ${eventType}`, process, receipt);
    attempts.add(1, ENDED);
    processTime.record(0.001, ENDED);
    deliveryTime.record(0.003, HANDLER);
  };
}
