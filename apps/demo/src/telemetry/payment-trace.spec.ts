import { describe, expect, it } from '@jest/globals';
import { missingSpans, paymentTraces } from './payment-trace.js';
import type { CollectedSpan } from './telemetry-collector.js';
import { formatTraces } from './trace-table.js';

const TRANSACTION = 'messaging.message.conversation_id';

/** A span that starts `startMs` after the checkout and takes 5.25 ms. Its trace is the first letter of its id. */
function span(
  spanId: string,
  name: string,
  startMs: number,
  more: Partial<CollectedSpan> = {},
): CollectedSpan {
  return {
    traceId: spanId.charAt(0).repeat(32),
    spanId,
    parentSpanId: null,
    linkedSpanIds: [],
    name,
    kind: 'CONSUMER',
    startMs: 1_790_000_000_000 + startMs,
    durationMs: 5.25,
    failed: false,
    attributes: {},
    process: 'shop 1',
    ...more,
  };
}

const server = (path: string, status: number, more = {}): Partial<CollectedSpan> => ({
  kind: 'SERVER',
  attributes: {
    'url.path': path,
    'http.response.status_code': status,
    'user_agent.original': 'a secret of the client',
    ...more,
  },
});

/** The spans of a payment, and of another one, in the order in which they end. */
const SPANS: readonly CollectedSpan[] = [
  span('a2', 'POST /emulator/checkout-invoices', 2, {
    parentSpanId: 'a1',
    kind: 'CLIENT',
    attributes: { 'http.response.status_code': 201, 'server.address': '10.1.2.3' },
  }),
  span('a1', 'POST', 0, server('/api/orders', 201, { [TRANSACTION]: 'tx-1' })),
  span('x1', 'POST', 5, server('/api/orders', 201, { [TRANSACTION]: 'tx-2' })),
  span('b2', 'receive transaction.completed', 40, {
    parentSpanId: 'b1',
    process: 'shop 2',
    attributes: { [TRANSACTION]: 'tx-1', 'payments.status': 'stored', 'customer.phone': '+254700' },
  }),
  span('b1', 'POST', 38, { ...server('/webhooks/payments', 200), process: 'shop 2' }),
  span('c2', 'GET /v1/transactions/{id}', 47, { parentSpanId: 'c1', kind: 'CLIENT' }),
  span('c3', 'record in ledger', 60, { parentSpanId: 'c1', kind: 'INTERNAL' }),
  span('c1', 'process transaction.completed', 46, {
    linkedSpanIds: ['b2'],
    attributes: {
      'messaging.destination.subscription.name': 'record-payment',
      'payments.attempt': 1,
      'payments.outcome': 'done',
    },
  }),
];

describe('The trace of a payment', () => {
  it('TE-09 paymentTraces() joins the spans of checkout, webhook request, attempt and ledger by the transaction id and span links', () => {
    expect(formatTraces(paymentTraces(SPANS, 'tx-1'))).toEqual([
      'span                                                trace     process        start    duration',
      'POST /api/orders                                    aaaaaaaa  shop 1         +0 ms      5.3 ms',
      '│  messaging.message.conversation_id=tx-1  http.response.status_code=201',
      '└─ POST /emulator/checkout-invoices                 aaaaaaaa  shop 1         +2 ms      5.3 ms',
      '      http.response.status_code=201',
      'POST /webhooks/payments                             bbbbbbbb  shop 2        +38 ms      5.3 ms',
      '│  http.response.status_code=200',
      '└─ receive transaction.completed                    bbbbbbbb  shop 2        +40 ms      5.3 ms',
      '   │  messaging.message.conversation_id=tx-1  payments.status=stored',
      '   └╌ process transaction.completed                 cccccccc  shop 1        +46 ms      5.3 ms',
      '      │  messaging.destination.subscription.name=record-payment  payments.attempt=1',
      '      │  payments.outcome=done',
      '      ├─ GET /v1/transactions/{id}                  cccccccc  shop 1        +47 ms      5.3 ms',
      '      └─ record in ledger                           cccccccc  shop 1        +60 ms      5.3 ms',
    ]);
    expect(missingSpans(paymentTraces(SPANS, 'tx-1'))).toEqual([]);
  });

  it.each([
    ['a2', ['POST /emulator/checkout-invoices']],
    ['a1', ['POST /api/orders']],
    ['b1', ['POST /webhooks/payments']],
    ['b2', ['POST /webhooks/payments']],
    ['c1', ['process transaction.completed']],
    ['c2', ['GET /v1/transactions/{id}']],
    ['c3', ['record in ledger']],
  ])('TE-09 without the span %s, the trace of a payment lacks %j', (spanId, missing) => {
    const others = SPANS.filter((span) => span.spanId !== spanId);
    expect(missingSpans(paymentTraces(others, 'tx-1'))).toEqual(missing);
  });

  it('TE-09 the trace of a payment lacks the attempt if the attempt has no link to the receipt of the event', () => {
    const spans = SPANS.map((span) => ({ ...span, linkedSpanIds: [] }));
    const traces = paymentTraces(spans, 'tx-1');
    expect(missingSpans(traces)).toEqual(['process transaction.completed']);
  });

  it('TE-09 formatTraces() prints a span whose parent is missing, and marks a failed span', () => {
    const spans = SPANS.filter(({ spanId }) => spanId !== 'b1').map((span) => ({
      ...span,
      failed: span.spanId === 'c3',
    }));
    const lines = formatTraces(paymentTraces(spans, 'tx-1'));
    expect(lines.filter((line) => line.startsWith('receive transaction.completed '))).toHaveLength(
      1,
    );
    expect(lines.at(-1)).toBe('         FAILED');
  });
});
