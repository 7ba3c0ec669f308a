import { metrics, trace } from '@opentelemetry/api';
import type { MeterProvider, Tracer, TracerProvider } from '@opentelemetry/api';
import { checkFields, flag, optional } from '../../errors/option-checks.js';
import type { OptionChecks } from '../../errors/option-checks.js';
import type { PaymentsInstrumentation, PaymentsObserver } from '../observers.js';
import { measurements, startGauges } from './metrics.js';
import { startSpan } from './spans.js';

const SCOPE = 'nestjs-payments';

/** Options of {@link openTelemetry}. */
export interface OpenTelemetryOptions {
  /** Creates the tracer, at the first span. Default: the global provider of `@opentelemetry/api`. */
  tracerProvider?: TracerProvider;
  /**
   * Creates the meter, at the first measurement or when the application has started. Default: the global provider of
   * `@opentelemetry/api`.
   */
  meterProvider?: MeterProvider;
  /** Whether to start spans. Default `true`. */
  traces?: boolean;
  /** Whether to record metrics. Default `true`. */
  metrics?: boolean;
  /**
   * Whether counters and histograms have the attribute `payments.company`. With this attribute, each company has time
   * series of its own. The attribute names only the first 1,000 companies of a process; for other companies, its value
   * is `_OTHER`. Default `false`.
   */
  companyAttribute?: boolean;
}

const isProvider =
  (method: string) =>
  (value: object): boolean =>
    typeof (value as Record<string, unknown>)[method] === 'function';
const CHECKS = {
  tracerProvider: optional<TracerProvider>('a TracerProvider', isProvider('getTracer')),
  meterProvider: optional<MeterProvider>('a MeterProvider', isProvider('getMeter')),
  traces: flag(true),
  metrics: flag(true),
  companyAttribute: flag(false),
} satisfies OptionChecks<OpenTelemetryOptions>;

/**
 * Creates an observer for the option `observers` that traces and measures the module with OpenTelemetry. The observer
 * only calls `@opentelemetry/api`, so start the SDK before the application. If the application has several such
 * observers, only the first with `traces` starts spans.
 *
 * @throws PaymentsError `options_invalid`.
 * @example
 * ```ts
 * PaymentsModule.forRoot({ ...options, observers: [openTelemetry()] })
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): PaymentsObserver {
  const checked = checkFields('openTelemetry', options, CHECKS);
  return {
    ...(checked.traces && tracing(checked.tracerProvider ?? trace)),
    ...(checked.metrics && measuring(checked.meterProvider ?? metrics, checked.companyAttribute)),
  };
}

/**
 * Creates the tracer at the first span. If the provider throws, only the trace is incomplete, and the application
 * starts.
 */
function tracing(tracerProvider: TracerProvider): PaymentsInstrumentation {
  let tracer: Tracer | undefined;
  return {
    startSpan: (operation) => startSpan((tracer ??= tracerProvider.getTracer(SCOPE)), operation),
  };
}

function measuring(
  meterProvider: MeterProvider,
  companyAttribute: boolean,
): PaymentsInstrumentation {
  const meter = () => meterProvider.getMeter(SCOPE);
  return {
    attach: (inbox) => startGauges(meter(), inbox),
    ...measurements(meter, companyAttribute),
  };
}
