// The demo loads this file in the process of a shop before the shop itself, with --import. This file starts the SDK of
// OpenTelemetry, sends each ended span to the demo, and serves the metrics for Prometheus on a free port.
import { once } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { TracerProvider } from '@opentelemetry/sdk-trace';
import type { SpanProcessor } from '@opentelemetry/sdk-trace';
import { toFinishedSpan } from './finished-span.js';
import type { TelemetryMessage } from './finished-span.js';

const METRICS_PATH = '/metrics';

const sender: SpanProcessor = {
  onStart: () => {},
  onEnd: (span) => send({ span: toFinishedSpan(span) }),
  forceFlush: async () => {},
  shutdown: async () => {},
};
const prometheus = new PrometheusExporter({ preventServerStart: true });

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [sender] }));
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [prometheus] }));

// Creates a span for each HTTP request to the shop. nestjs-payments creates the spans of the calls to the payments
// service.
void new HttpInstrumentation({
  disableOutgoingRequestInstrumentation: true,
  ignoreIncomingRequestHook: ({ url }) => url === METRICS_PATH,
});
// The instrumentation changes `node:http` when a CommonJS module loads it.
createRequire(import.meta.url)('node:http');

const server = createServer((request, response) => {
  if (request.url === METRICS_PATH) prometheus.getMetricsRequestHandler(request, response);
  else response.writeHead(404).end();
});
server.listen(0, '127.0.0.1').unref();
await once(server, 'listening');
const { port } = server.address() as AddressInfo;
send({ metricsUrl: `http://127.0.0.1:${port}${METRICS_PATH}` });

/** Sends a message to the process of the demo. Has no effect if that process has exited. */
function send(message: TelemetryMessage): void {
  if (process.connected) process.send!(message, undefined, undefined, () => {});
}
