import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import type { DataPoint, Histogram, MetricData } from '@opentelemetry/sdk-metrics';
import {
  InMemorySpanExporter,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { ReadableSpan } from '@opentelemetry/sdk-trace';
import { openTelemetry } from 'nestjs-payments/otel';
import type { OpenTelemetryOptions } from 'nestjs-payments/otel';
import type { PaymentsInstrumentation } from '../../../libs/payments/src/telemetry/observers.js';
import { eventually } from '../time/waiting.js';

/** Lets `context.with()` of `@opentelemetry/api` work, as the SDK for Node does. Returns a function that undoes it. */
export function useContext(): () => void {
  const manager = new AsyncLocalStorageContextManager().enable();
  context.setGlobalContextManager(manager);
  return () => {
    context.disable();
    manager.disable();
  };
}

/** The spans of one application, in memory. */
export class Traces {
  readonly #exporter = new InMemorySpanExporter();
  readonly provider = new TracerProvider({
    spanProcessors: [new SimpleSpanProcessor({ exporter: this.#exporter })],
  });
  readonly observers: PaymentsInstrumentation[] = [
    openTelemetry({ tracerProvider: this.provider, metrics: false }),
  ];

  /** The ended spans whose name begins with `name`, the earliest end first. */
  of(name: string): ReadableSpan[] {
    return this.#exporter.getFinishedSpans().filter((span) => span.name.startsWith(name));
  }

  /** The spans as {@link of}, once there are at least `count` of them. */
  ended(name: string, count = 1): Promise<ReadableSpan[]> {
    return eventually(() => {
      const found = this.of(name);
      if (found.length < count) throw new Error(`${found.length} spans ${name} have ended`);
      return found;
    });
  }
}

/** A reader that collects when a test asks. */
class TestReader extends MetricReader {
  protected override async onShutdown(): Promise<void> {}
  protected override async onForceFlush(): Promise<void> {}
}

type Point = DataPoint<number> | DataPoint<Histogram>;

/** The metrics of one application, in memory and as Prometheus scrapes them. */
export class Metrics {
  readonly #reader = new TestReader();
  readonly #prometheus = new PrometheusExporter({ preventServerStart: true });
  readonly provider = new MeterProvider({ readers: [this.#reader, this.#prometheus] });

  readonly observer = this.observe();

  /** An instrumentation that only measures, unless the options say otherwise. */
  observe(options: OpenTelemetryOptions = {}): PaymentsInstrumentation {
    return openTelemetry({ meterProvider: this.provider, traces: false, ...options });
  }

  /** All metrics, by name. */
  async collect(): Promise<Map<string, MetricData>> {
    const { resourceMetrics } = await this.#reader.collect();
    const found = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
    return new Map(found.map((metric) => [metric.descriptor.name, metric]));
  }

  /** The values of a metric as `attribute=value …` → number; of a histogram, the number of its values. */
  async values(name: string): Promise<Record<string, number>> {
    const points = ((await this.collect()).get(name)?.dataPoints ?? []) as readonly Point[];
    return Object.fromEntries(
      points.map(({ attributes, value }) => [
        Object.entries(attributes)
          .map(([key, is]) => `${key.replace(/^payments\./, '')}=${String(is)}`)
          .toSorted()
          .join(' '),
        typeof value === 'number' ? value : value.count,
      ]),
    );
  }

  /** What Prometheus gets over HTTP. */
  async scrape(): Promise<string> {
    const server = createServer((request, response) =>
      this.#prometheus.getMetricsRequestHandler(request, response),
    ).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      return await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    } finally {
      server.close();
      server.closeAllConnections();
    }
  }
}
