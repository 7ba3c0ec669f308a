import type { Scene } from '../demo-environment.js';
import { missingSpans, paymentTraces } from '../telemetry/payment-trace.js';
import { formatMetrics, scrape } from '../telemetry/scraped-metrics.js';
import { formatTraces } from '../telemetry/trace-table.js';

/** A text that explains how the traces of a payment are joined. */
const JOINS = [
  'The service sends no traceparent. Therefore the webhook request starts its own trace.',
  'The id of the transaction joins this trace to the trace of the checkout.',
  'A span link (╌) joins the attempt to the receipt.',
];

/** A scene that prints the trace of one payment over all processes. */
const tracedPayment: Scene = {
  title: 'One payment, as OpenTelemetry traces it from the checkout to the ledger',
  async play({ customer, pay, report, shops }) {
    const order = await customer.createOrder('umbrella-28', 640);
    const id = await pay(order);
    const { reference } = order;
    await report.check('the order', 'paid', async () => (await customer.order(reference)).status);
    const traces = () => paymentTraces(shops.telemetry!.spans, id);
    await report.check('missing spans', 'none', () => missingSpans(traces()).join(', ') || 'none');
    report.line();
    for (const line of JOINS) report.line(`    ${line}`);
    report.line();
    for (const line of formatTraces(traces())) report.line(`    ${line}`);
  },
};

/**
 * A scene that reads the metrics of each shop. Each shop serves its metrics at its own address, as Prometheus expects.
 */
const scrapedMetrics: Scene = {
  title: 'The metrics of each shop, as Prometheus scrapes them',
  async play({ report, shops, signal }) {
    const { metricsUrls } = shops.telemetry!;
    const scraped = await Promise.all(
      metricsUrls.map(async ([name, url]) => [name, await scrape(url, signal)] as const),
    );
    const up = scraped.filter(([, metrics]) => metrics.get('payments_store_up') === 1);
    await report.check('shops with payments_store_up 1', scraped.length, () => up.length, 0);
    const received = scraped.some(([, metrics]) => metrics.has('payments_events_received_total'));
    await report.check(
      'payments_events_received_total',
      'some',
      () => (received ? 'some' : 'none'),
      0,
    );
    report.line();
    for (const [name, url] of metricsUrls) report.line(`    ${name}  ${url}`);
    report.line();
    for (const line of formatMetrics(scraped)) report.line(`    ${line}`);
  },
};

/** The scenes that `--telemetry` adds, in order. */
export const TELEMETRY_SCENES: readonly Scene[] = [tracedPayment, scrapedMetrics];
