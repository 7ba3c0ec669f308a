import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import type { Attributes, HrTime } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';

/** A span that has ended, as a shop sends it to the demo in JSON. */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Id of the span that contains it; `null` for the first span of a trace. */
  readonly parentSpanId: string | null;
  /** Ids of the spans that it is linked to. */
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

/** What a shop sends to the demo: the address of its metrics, once, and each span that has ended. */
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

/** OpenTelemetry counts seconds, and nanoseconds of the last second. */
function toMilliseconds([seconds, nanoseconds]: HrTime): number {
  return seconds * 1000 + nanoseconds / 1e6;
}
