import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, HrTime } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** A span that has ended, as a shop sends it to the demo in JSON. */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Id of the parent span; `null` for the first span of a trace. */
  readonly parentSpanId: string | null;
  /** Ids of the spans that this span is linked to. */
  readonly linkedSpanIds: readonly string[];
  readonly name: string;
  /** `SERVER`, `CLIENT`, `CONSUMER`, … */
  readonly kind: string;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly durationMs: number;
  readonly failed: boolean;
  readonly attributes: Attributes;
}

/**
 * A message that a shop sends to the demo. The message contains either a span that has ended, or the address of the
 * shop's metrics. The shop sends this address once.
 */
export type TelemetryMessage = { readonly metricsUrl: string } | { readonly span: FinishedSpan };

/** Converts a span of the SDK. */
export function toFinishedSpan(span: ReadableSpan): FinishedSpan {
  const { traceId, spanId } = span.spanContext();
  return {
    traceId,
    spanId,
    parentSpanId: span.parentSpanContext?.spanId ?? null,
    linkedSpanIds: span.links.map(({ context }) => context.spanId),
    name: span.name,
    kind: SpanKind[span.kind],
    startMs: toMilliseconds(span.startTime),
    durationMs: toMilliseconds(span.duration),
    failed: span.status.code === SpanStatusCode.ERROR,
    attributes: span.attributes,
  };
}

/** Converts a time of OpenTelemetry, which consists of seconds and nanoseconds. */
function toMilliseconds([seconds, nanoseconds]: HrTime): number {
  return seconds * 1000 + nanoseconds / 1e6;
}
