import { metrics, trace } from '@opentelemetry/api';
import type { MeterProvider, Tracer, TracerProvider } from '@opentelemetry/api';
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
   * series of its own. Only the first 1,000 companies of a process are named; the others are `_OTHER`. Default `false`.
   */
  companyAttribute?: boolean;
}

/**
 * Traces and measures the module with OpenTelemetry, for the option `observers`. The observer only calls
 * `@opentelemetry/api`, so start the SDK before the application.
 *
 * @example
 * ```ts
 * PaymentsModule.forRoot({ ...options, observers: [openTelemetry()] })
 * ```
 */
export function openTelemetry(options: OpenTelemetryOptions = {}): PaymentsObserver {
  const { traces = true, metrics: measures = true } = options;
  return { ...(traces && tracing(options)), ...(measures && measuring(options)) };
}

/** The tracer is created at the first span, so that an error of the provider does not affect the options. */
function tracing({ tracerProvider = trace }: OpenTelemetryOptions): PaymentsInstrumentation {
  let tracer: Tracer | undefined;
  return {
    startSpan: (operation) => startSpan((tracer ??= tracerProvider.getTracer(SCOPE)), operation),
  };
}

function measuring(options: OpenTelemetryOptions): PaymentsInstrumentation {
  const { meterProvider, companyAttribute = false } = options;
  const meter = () => (meterProvider ?? metrics).getMeter(SCOPE);
  return {
    attach: (inbox) => startGauges(meter(), inbox),
    ...measurements(meter, companyAttribute),
  };
}
