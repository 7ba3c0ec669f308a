import { context } from '@opentelemetry/api';
import type { MeterProvider as Meters, TracerProvider as Tracers } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Sampler, SpanExporter } from '@opentelemetry/sdk-trace';
import type { PaymentsObserver } from 'nestjs-payments';
import { openTelemetry } from 'nestjs-payments/otel';

/**
 * The observers of an application. `none`: no observer. `empty`: an observer with methods that do nothing.
 * `openTelemetry`, `sampled` and `metrics`: `openTelemetry()` with all spans, with a tenth of the spans, or without
 * spans. `sdk`: no observer, because the handler calls the SDK; see `otel-sdk-calls.ts`.
 */
export type ObserverChoice = 'none' | 'empty' | 'openTelemetry' | 'sampled' | 'metrics' | 'sdk';

/** Creates the observers for a choice. Call this function only once in a process. */
export function observersOf(choice: ObserverChoice = 'none'): PaymentsObserver[] {
  if (choice === 'none' || choice === 'sdk') return [];
  if (choice === 'empty') return [emptyObserver()];
  const tenth = new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(0.1) });
  const providers = startSdk(choice === 'sampled' ? tenth : undefined);
  return [openTelemetry({ traces: choice !== 'metrics', ...providers })];
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

/**
 * Starts the SDK. By default, every span is sampled. The batches of spans are dropped instead of sent, and no reader
 * collects the metrics.
 */
export function startSdk(sampler?: Sampler): { tracerProvider: Tracers; meterProvider: Meters } {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const exporter: SpanExporter = {
    export: (_spans, done) => done({ code: 0 }),
    shutdown: () => Promise.resolve(),
    forceFlush: () => Promise.resolve(),
  };
  const spanProcessors = [new BatchSpanProcessor({ exporter })];
  return {
    tracerProvider: new TracerProvider({ spanProcessors, ...(sampler && { sampler }) }),
    meterProvider: new MeterProvider({ readers: [new IdleReader()] }),
  };
}

class IdleReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}
