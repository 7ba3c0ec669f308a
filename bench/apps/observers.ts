import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { BatchSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import type { SpanExporter } from '@opentelemetry/sdk-trace';
import type { PaymentsInstrumentation, PaymentsObserver } from 'nestjs-payments';
import { openTelemetry } from 'nestjs-payments/otel';

/** The observers of an application: none, one whose methods do nothing, or `openTelemetry()` with an SDK, also without spans. */
export type ObserverChoice = 'none' | 'empty' | 'openTelemetry' | 'metrics';

/** The observers for a choice. Call it once in a process. */
export function observersOf(choice: ObserverChoice = 'none'): PaymentsInstrumentation[] {
  if (choice === 'none') return [];
  return [choice === 'empty' ? emptyObserver() : withSdk(choice === 'openTelemetry')];
}

function emptyObserver(): PaymentsObserver {
  const nothing = (): void => {};
  return {
    eventReceived: nothing,
    eventDuplicate: nothing,
    requestRejected: nothing,
    attemptStarted: nothing,
    attemptEnded: nothing,
    deliveryDead: nothing,
  };
}

/** Every span is sampled. The batches of spans are dropped instead of sent, and no reader collects the metrics. */
function withSdk(traces: boolean): PaymentsInstrumentation {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const exporter: SpanExporter = {
    export: (_spans, done) => done({ code: 0 }),
    shutdown: () => Promise.resolve(),
    forceFlush: () => Promise.resolve(),
  };
  return openTelemetry({
    traces,
    tracerProvider: new TracerProvider({ spanProcessors: [new BatchSpanProcessor({ exporter })] }),
    meterProvider: new MeterProvider({ readers: [new IdleReader()] }),
  });
}

class IdleReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}
